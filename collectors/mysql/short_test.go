package mysql

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShort(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"SELECT 1", "SELECT 1"},
		{" SELECT\n\t1  ,\r\n2 ", "SELECT 1 , 2"},                                             // one line, single blanks
		{"SELECT '\xff\xfe'", "SELECT '?'"},                                                   // a run of bytes that are no text
		{strings.Repeat("x", 200), strings.Repeat("x", 200)},                                  // just fits
		{strings.Repeat("x", 201), strings.Repeat("x", 200) + "..."},                          // cut
		{strings.Repeat("é", 201), strings.Repeat("é", 200) + "..."},                          // between letters, not bytes
		{strings.Repeat("x ", 100) + strings.Repeat(" ", 99), strings.Repeat("x ", 99) + "x"}, // blanks do not count
	} {
		if got := short(c.in); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q is cut to %q, want %q", c.in, got, c.want)
		}
	}
}
