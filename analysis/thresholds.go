package analysis

// Thresholds of the verdict. They are ours, not nature's: each stands here with
// its reason.
const (
	// minSlices and minFinished: below them a share has no useful interval.
	// Twenty batches are the usual least number for batch means; 200
	// operations leave ten a batch. Operations that are stuck finish rarely,
	// so waiting in every slice is enough too.
	minSlices   = 20
	minFinished = 200

	// nestedShare: holders of a resource that spend a fifth of their hold
	// waiting for the same resource hold each other up; two acquires in a row
	// never show as this.
	nestedShare = 0.20

	// retryShare: where half of the time goes into attempts after a lost race,
	// there is more repeated work than work.
	retryShare = 0.50

	// minWaiters and minUtilisation or minWaitShare say that something is
	// saturated: on average half an operation stands in the queue, and the
	// resource is in use half the time or a fifth of all time is waiting.
	// Simulated services beside busy neighbours stay below it; a pool at the
	// knee (4 connections, 6 workers) is above it.
	minWaiters     = 0.5
	minUtilisation = 0.5
	minWaitShare   = 0.2

	// maxUnexplained: of the time inside connections. Above it a second cause
	// of the size of a usual leader could hide.
	maxUnexplained = 0.20

	// Causes of work, when nothing is saturated.
	networkShare    = 0.50   // of the operations' time
	networkPing     = 0.5e-3 // s: below it the network is a local one
	commitShare     = 0.50
	commitMean      = 1e-3 // s a commit: slower than a flush to a local SSD
	gcShare         = 0.25 // of our CPU: the runtime's own limit for background marking
	statementShare  = 0.50
	examinedPerSent = 100

	// thinkShare: workers that think half the time set the load themselves.
	thinkShare = 0.50
	// offeredMet: a load within 2 % of the offered rate was met.
	offeredMet = 0.98

	// symptomShare: a stage with a tenth of the operations' time is worth a
	// line if its blame went elsewhere.
	symptomShare = 0.10

	// Causes of row-lock waits. A row that others hold for a quarter of all the
	// time it is held, or half of the waiting behind one old transaction, is not
	// a matter of our load; half of the waiters asking for gaps is one of range
	// scans and inserts, which spreading rows does not help.
	// Fewer than eight samples, two seconds, say too little of either.
	minSamples  = 8
	foreignHold = 0.25
	// victimShare: operations that were the victim of a deadlock. One in twenty
	// costs as much as it loses: the victim's work is done twice.
	victimShare = 0.05
	longShare   = 0.50
	gapShare    = 0.50

	// Causes of waiting for a lock in Redis. Leases that end under their holders
	// are wrong at any rate, and one in a hundred is no accident; a lock that is
	// free for half of the time in which somebody wants it is lost to the pauses
	// between attempts.
	leaseShare = 0.01
	idleShare  = 0.50

	// windowSlices: fewer slices with one leader are no window.
	windowSlices = 3
)
