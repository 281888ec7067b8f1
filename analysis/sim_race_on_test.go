//go:build race

package analysis_test

// simRace tells whether the race detector runs, under which a simulation takes
// twenty times as long.
const simRace = true
