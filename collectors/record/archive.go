package record

import (
	"archive/tar"
	"io"
	"io/fs"
)

// Archive writes the files of the record into a tar archive, below a folder
// named by the run's id. What is no plain file is left out.
func (r *Reader) Archive(w *tar.Writer) error {
	files := r.dir.FS()
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return archiveFile(w, files, string(r.run.ID), name)
	})
}

func archiveFile(w *tar.Writer, files fs.FS, folder, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: folder + "/" + name, Mode: 0o644, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, info.Size())
	return err
}
