package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// listFiles lists what is below dir, a line each with size and path, in lexical
// order. Folders have size 0.
func listFiles(dir string) (string, error) {
	var list strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if e.IsDir() {
			size = 0
		}
		_, err = fmt.Fprintln(&list, size, path)
		return err
	})
	return list.String(), err
}
