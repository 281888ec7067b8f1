package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// explain makes the error of a source. It says what to do about a refusal, and
// never holds the password. needs is the right that the reading takes, as ACL
// SETUSER writes it.
func (s *Server) explain(source, needs string, err error) error {
	user := s.Client.Options().Username
	if user == "" {
		user = "default"
	}
	switch code(err) {
	case "WRONGPASS":
		return fmt.Errorf("%s: the server does not accept user %q with this password (WRONGPASS)", source, user)
	case "NOAUTH":
		return fmt.Errorf("%s: the server wants a password: give it in the URL, as redis://user:password@host:port (NOAUTH)", source)
	case "NOPERM":
		return fmt.Errorf("%s: user %q may not read this; to allow it: ACL SETUSER %s %s (NOPERM)", source, user, user, needs)
	}
	return fmt.Errorf("%s: %w", source, conceal(err, s.Client.Options().Password))
}

// code is the first word of an error that the server answered, such as "ERR" or
// "NOPERM"; other errors have none.
func code(err error) string {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return ""
	}
	word, _, _ := strings.Cut(answer.Error(), " ")
	return word
}

// conceal leaves the password out of an error. Servers repeat a command that
// they do not know with the beginning of its arguments, so that a part of the
// password is enough to leave out all that the server says.
func conceal(err error, password string) error {
	switch {
	case code(err) != "" && holdsPart(err.Error(), password):
		return errors.New("the server refuses, with a text that is left out since it seems to repeat the password")
	case password != "" && strings.Contains(err.Error(), password):
		return errors.New(strings.ReplaceAll(err.Error(), password, "***"))
	}
	return err
}

// holdsPart tells whether s holds four bytes of the password in their order, or
// the whole of a shorter one.
func holdsPart(s, password string) bool {
	n := min(4, len(password))
	for i := 0; n > 0 && i+n <= len(password); i++ {
		if strings.Contains(s, password[i:i+n]) {
			return true
		}
	}
	return false
}
