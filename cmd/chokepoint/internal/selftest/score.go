package selftest

import "math"

// Outcome is one run and what the analysis made of it.
type Outcome struct {
	Name      string  `json:"name"`
	Strength  string  `json:"strength"`
	Server    string  `json:"server"`
	Layer     string  `json:"layer"`
	Cause     string  `json:"cause"`
	Holder    string  `json:"holder"`
	GotLayer  string  `json:"got_layer"`
	GotCause  string  `json:"got_cause"`
	GotHolder string  `json:"got_holder"`
	Seconds   float64 `json:"seconds"`
	RunID     string  `json:"run_id"`
	Summary   string  `json:"summary"`
}

// LayerRight tells whether the layer is that of the fault.
func (o Outcome) LayerRight() bool { return o.GotLayer == o.Layer }

// CauseRight tells whether layer and cause are those of the fault.
func (o Outcome) CauseRight() bool { return o.LayerRight() && (o.Cause == "" || o.GotCause == o.Cause) }

// Conclusive tells whether the analysis named a layer.
func (o Outcome) Conclusive() bool { return o.GotLayer != "inconclusive" }

// Score is how often the analysis was right. Its JSON is schema 1 of `chokepoint
// selftest --output json`.
type Score struct {
	SchemaVersion int       `json:"schema_version"`
	Seed          uint64    `json:"seed"`
	Faults        []Outcome `json:"faults"`
	Runs          int       `json:"runs"`
	// Wrong counts runs with a fault whose layer was not named, WrongConclusive
	// those of them for which another layer was.
	Wrong           int        `json:"wrong"`
	WrongConclusive int        `json:"wrong_conclusive"`
	LayerAccuracy   float64    `json:"layer_accuracy"`
	LayerInterval   [2]float64 `json:"layer_accuracy_interval"`
	CauseAccuracy   float64    `json:"cause_accuracy"`
	CauseInterval   [2]float64 `json:"cause_accuracy_interval"`
	HolderAccuracy  float64    `json:"holder_accuracy"` // of the runs that ask for one
	HolderRuns      int        `json:"holder_runs"`
	HealthyRuns     int        `json:"healthy_runs"`
	FalseAlarms     int        `json:"false_alarms"`
	Seconds         float64    `json:"seconds"`
}

// NewScore adds up the outcomes. Healthy runs count apart: there, anything but
// none or inconclusive is a false alarm.
func NewScore(seed uint64, all []Outcome, seconds float64) Score {
	s := Score{SchemaVersion: 1, Seed: seed, Faults: all, Runs: len(all), Seconds: seconds}
	var layers, causes, holders, n int
	for _, o := range all {
		if o.Layer == "none" {
			s.HealthyRuns++
			if o.Conclusive() && !o.LayerRight() {
				s.FalseAlarms++
			}
			continue
		}
		n++
		switch {
		case o.LayerRight():
			layers++
		default:
			s.Wrong++
			if o.Conclusive() {
				s.WrongConclusive++
			}
		}
		if o.CauseRight() {
			causes++
		}
		if o.Holder != "" {
			s.HolderRuns++
			if o.GotHolder == o.Holder {
				holders++
			}
		}
	}
	s.LayerAccuracy, s.LayerInterval = share(layers, n)
	s.CauseAccuracy, s.CauseInterval = share(causes, n)
	s.HolderAccuracy, _ = share(holders, s.HolderRuns)
	return s
}

// share is k of n with its Wilson interval (95 %); of nothing it is nothing.
func share(k, n int) (p float64, interval [2]float64) {
	if n == 0 {
		return 0, interval
	}
	return float64(k) / float64(n), wilson(k, n)
}

// wilson is the score interval of Wilson (1927) for k successes in n trials, with
// 95 % confidence.
func wilson(k, n int) [2]float64 {
	const z = 1.959964
	p, m := float64(k)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return [2]float64{max(0, middle-half), min(1, middle+half)}
}
