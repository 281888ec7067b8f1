package report

import (
	"bytes"
	"io"
)

// Printable writes to w what a terminal may show: control characters, which a
// record of somebody else's may hold, become question marks. Line ends stay.
func Printable(w io.Writer) io.Writer { return printable{w} }

type printable struct{ w io.Writer }

func (p printable) Write(text []byte) (int, error) {
	clean := bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
	if _, err := p.w.Write(clean); err != nil {
		return 0, err
	}
	return len(text), nil
}
