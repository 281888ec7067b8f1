package selftest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"chokepoint/analysis"
	"chokepoint/cmd/chokepoint/internal/session"
	"chokepoint/collectors/record"
)

// Options say what a self-test runs.
type Options struct {
	Server string   // the flavour, as it is reported
	Names  []string // cases to run; empty is all
	Rounds int      // runs of each case and strength
	Seed   uint64   // of parameters and order
}

// Check tells what is wrong with the options.
func (o Options) Check() error {
	var all []string
	for _, c := range Cases() {
		all = append(all, c.Name)
	}
	for _, name := range o.Names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("there is no case %q; there are: %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

// trial is one run to be made.
type trial struct {
	c      Case
	strong bool
	round  int
}

func (o Options) trials() []trial {
	var all []trial
	for _, c := range Cases() {
		if len(o.Names) > 0 && !slices.Contains(o.Names, c.Name) {
			continue
		}
		for round := range o.Rounds {
			all = append(all, trial{c, false, round}, trial{c, true, round})
		}
	}
	rand.New(rand.NewPCG(o.Seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// rnd are the trial's own random numbers: the same for the same seed, whatever
// else is run.
func (t trial) rnd(seed uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, t.c.Name, t.strong, t.round)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Run makes all runs, one after another and in an order by chance, and scores
// them. tell is told of each that has ended. Ending ctx ends it early, with the
// score of those that were made.
func Run(ctx context.Context, env session.Env, o Options, tool record.Tool, tell func(done, all int, last Outcome)) (Score, error) {
	began := time.Now()
	trials := o.trials()
	var out []Outcome
	for i, t := range trials {
		if t.c.needsRedis && env.Redis.Options == nil {
			return Score{}, fmt.Errorf("case %s needs a Redis server", t.c.Name)
		}
		got, err := t.run(ctx, env, o, tool)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return Score{}, fmt.Errorf("case %s: %w", t.c.Name, err)
		}
		out = append(out, got)
		tell(i+1, len(trials), got)
	}
	return NewScore(o.Seed, out, time.Since(began).Seconds()), nil
}

func (t trial) run(ctx context.Context, env session.Env, o Options, tool record.Tool) (Outcome, error) {
	began := time.Now()
	p := t.c.Plan(t.strong, t.rnd(o.Seed))
	p.Tool = tool
	p.Parameters["selftest"] = t.c.Name
	out := Outcome{Name: t.c.Name, Strength: "mild", Server: o.Server, Layer: t.c.Layer, Cause: t.c.Cause, Holder: t.c.Holder}
	if t.strong {
		out.Strength = "strong"
	}
	id, err := session.Run(ctx, env, p)
	if err != nil {
		return out, err
	}
	r, err := record.Open(env.Runs, id)
	if err != nil {
		return out, err
	}
	defer r.Close()
	res, err := analysis.Attribute(r)
	if err != nil {
		return out, err
	}
	out.RunID, out.GotLayer, out.GotCause, out.Summary = string(id), res.Verdict.Layer, res.Verdict.Cause.Cause, res.Verdict.Summary
	if len(res.Verdict.Holder) > 0 {
		out.GotHolder = res.Verdict.Holder[0].Stage
	}
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}
