package workloads

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kinds of jitter, by their usual names (Brooker, "Exponential Backoff and
// Jitter", AWS Architecture Blog, 2015).
const (
	NoJitter     = "none"
	EqualJitter  = "equal"
	FullJitter   = "full"
	Decorrelated = "decorrelated"
)

// Jitters names the kinds.
func Jitters() []string { return []string{NoJitter, EqualJitter, FullJitter, Decorrelated} }

// BackoffPolicy says how long to wait before trying again. The zero value does not
// wait.
type BackoffPolicy struct {
	Base, Cap time.Duration
	Jitter    string
}

// Check tells what is wrong with the settings.
func (b BackoffPolicy) Check() error {
	switch {
	case b.Base < 0 || b.Cap < b.Base:
		return fmt.Errorf("the backoff's base (%v) must not be negative, nor above its cap (%v)", b.Base, b.Cap)
	case !slices.Contains(Jitters(), b.Jitter):
		return fmt.Errorf("there is no jitter %q; there are: %s", b.Jitter, strings.Join(Jitters(), ", "))
	}
	return nil
}

// Delay is the wait after the given number of failures, the first being 1; last
// is the wait before this one, which decorrelated jitter builds on.
func (b BackoffPolicy) Delay(failures int, last time.Duration, rnd *rand.Rand) time.Duration {
	most := b.exponential(failures)
	switch b.Jitter {
	case EqualJitter:
		return most/2 + upTo(most/2, rnd)
	case FullJitter:
		return upTo(most, rnd)
	case Decorrelated:
		from := max(b.Base, 1)
		return min(b.Cap, from+upTo(3*max(last, from)-from, rnd))
	}
	return most
}

// exponential is base * 2^(failures-1), at most the cap.
func (b BackoffPolicy) exponential(failures int) time.Duration {
	d := b.Base
	for range failures - 1 {
		if d >= b.Cap/2 {
			return b.Cap
		}
		d *= 2
	}
	return min(d, b.Cap)
}

// upTo is evenly distributed in [0, d].
func upTo(d time.Duration, rnd *rand.Rand) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(rnd.Int64N(int64(d) + 1))
}

// Sleep waits, and tells whether ctx lasts.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
