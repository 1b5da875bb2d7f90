package saturation

import "github.com/inferscale/inferscale/scaling"

// Codes of what the replicas say together. Their subject is the pod with the highest load in question.
const (
	// ShortKV asks for more: too little of the KV cache is spare on average.
	ShortKV scaling.Code = "ShortKV spare < trigger, saturated, replicas"
	// ShortQueue asks for more: too little room in the queue is spare on average.
	ShortQueue scaling.Code = "ShortQueue spare < trigger, saturated, replicas"
	// ShortBoth asks for more: both are true.
	ShortBoth scaling.Code = "ShortBoth kv < kvTrigger, queue < queueTrigger"
	// ShortTie asks for more in mode Literal: the average is the trigger up to Noise, and below it in decimals.
	ShortTie scaling.Code = "ShortTie spare == trigger, saturated, replicas"
	// Enough holds: there is enough to spare for what runs.
	Enough scaling.Code = "Enough kv >= kvTrigger, queue >= queueTrigger"
	// Unclear holds in mode Literal: an average is not a number, and compares with nothing.
	Unclear scaling.Code = "Unclear kv, queue"
	// Spare lets one go: with the load on one replica less there is still enough to spare.
	Spare scaling.Code = "Spare kvAfter <= kvLimit, queueAfter <= queueLimit"
	// FullKV holds: with one replica (of this variant) less, too little of the KV cache would be spare.
	FullKV scaling.Code = "FullKV after > limit"
	// FullQueue holds: with one replica (of this variant) less, too little room in the queue would be spare.
	FullQueue scaling.Code = "FullQueue after > limit"
	// FullTie holds in mode Literal: with one replica less, the load would be at its limit up to Noise, and above it in
	// decimals.
	FullTie scaling.Code = "FullTie after == limit"
	// FullSaturated holds: with one replica less, the others would be saturated on average.
	FullSaturated scaling.Code = "FullSaturated after >= threshold"
	// SaturatedKV holds: a replica is saturated, so none may go.
	SaturatedKV scaling.Code = "SaturatedKV kv >= threshold, saturated, replicas"
	// SaturatedQueue holds: a replica is saturated, so none may go.
	SaturatedQueue scaling.Code = "SaturatedQueue queue >= threshold, saturated, replicas"
	// Missing holds: what a replica has to do is not known, so none may go. Its subject is that replica.
	Missing scaling.Code = "Missing missing > none, replicas"
	// TooFew holds: there is no other replica to take the load.
	TooFew scaling.Code = "TooFew free < needed"
	// NoData says nothing: no replica gives a value.
	NoData scaling.Code = "NoData replicas, missing"
	// Deficient sizes a scale-up by the rule Deficit: how much capacity is lacking and how much is on its way.
	Deficient scaling.Code = "Deficient lacking > coming"
	// Coming holds by the rule Deficit: what is lacking is on its way.
	Coming scaling.Code = "Coming lacking <= coming"
)

// Codes of a variant's place in the decision.
const (
	// Cheapest grows the variant: no other that may grow costs less per capacity. Next is the next dearer one.
	Cheapest scaling.Code = "Cheapest price <= next"
	// Dearest shrinks the variant: no other that may shrink costs more per capacity.
	Dearest scaling.Code = "Dearest price >= next"
	// Alone grows or shrinks the variant: it is the only one that may. (In mode Literal: it was chosen.)
	Alone scaling.Code = "Alone price"
	// Dearer holds: the subject, another variant, is cheaper and grows, or as cheap and first by name.
	Dearer scaling.Code = "Dearer price >= cheapest"
	// Cheaper holds: the subject, another variant, is dearer and shrinks, or as dear and last by name.
	Cheaper scaling.Code = "Cheaper price <= dearest"
	// AtMax holds: the variant may not grow.
	AtMax scaling.Code = "AtMax current >= max"
	// AtMin holds: the variant may not shrink, or it would lose its last replica.
	AtMin scaling.Code = "AtMin current <= least"
	// Pending holds: replicas of the variant are not ready, so it does not grow.
	Pending scaling.Code = "Pending pending > none"
	// Settling takes a scale-down back: it has not been safe for long enough.
	Settling scaling.Code = "Settling held:s < window:s"
)

// Codes of a variant in transition, and of the others while one is.
const (
	// Growing goes on: the variant was asked for more replicas before and is not there yet.
	Growing scaling.Code = "Growing desired > current"
	// Shrinking goes on: the variant was asked for fewer replicas before and is not there yet.
	Shrinking scaling.Code = "Shrinking desired < current"
	// Starting holds: fewer replicas report than there should be.
	Starting scaling.Code = "Starting reporting < current"
	// Stopping holds: more replicas report than there should be.
	Stopping scaling.Code = "Stopping reporting > current"
	// Blocked holds: the subject, a variant of the model, is in transition, for so long of so long at most.
	Blocked scaling.Code = "Blocked waited:s < timeout:s"
	// Frozen holds: the subject, a variant of the model, is in transition, and no timeout ends that.
	Frozen scaling.Code = "Frozen"
	// Underway goes on, for the model as a whole: variants are on their way to counts asked for before.
	Underway scaling.Code = "Underway variants > none"
	// SetAside holds: the variant is in transition for so long that the rest is decided without it.
	SetAside scaling.Code = "SetAside waited:s >= timeout:s"
)

// Codes of variants of which too little is known.
const (
	// NoState holds: replicas report for a variant of which no state is given.
	NoState scaling.Code = "NoState reporting > stated"
	// LeftOut holds in mode Literal: the variant has a state and no replica that reports.
	LeftOut scaling.Code = "LeftOut current, pending"
	// Contradicted holds: two states of the variant differ.
	Contradicted scaling.Code = "Contradicted"
	// Invalid holds: a field of the variant, the subject, is wrong.
	Invalid scaling.Code = "Invalid"
	// NoTarget says nothing: the variant's target does not exist.
	NoTarget scaling.Code = "NoTarget"
	// NoVariant says nothing: the Group's configuration has no variant of the target's name.
	NoVariant scaling.Code = "NoVariant"
)
