package saturation

import "github.com/inferscale/inferscale/scaling"

// Codes of the joint state of the replicas. The subject is the pod with the highest load in question.
const (
	// ShortKV scales up: the average spare KV cache is below the trigger.
	ShortKV scaling.Code = "ShortKV spare < trigger, saturated, replicas"
	// ShortQueue scales up: the average spare room in the queue is below the trigger.
	ShortQueue scaling.Code = "ShortQueue spare < trigger, saturated, replicas"
	// ShortBoth scales up: both are below their triggers.
	ShortBoth scaling.Code = "ShortBoth kv < kvTrigger, queue < queueTrigger"
	// ShortTie scales up in mode Literal: the average equals the trigger up to Noise, and in decimals it is below.
	ShortTie scaling.Code = "ShortTie spare == trigger, saturated, replicas"
	// Enough holds: the replicas have enough spare capacity.
	Enough scaling.Code = "Enough kv >= kvTrigger, queue >= queueTrigger"
	// Unclear holds in mode Literal: an average is not a number, so that no comparison is true.
	Unclear scaling.Code = "Unclear kv, queue"
	// Spare allows a scale-down: with one replica less there is still enough spare capacity.
	Spare scaling.Code = "Spare kvAfter <= kvLimit, queueAfter <= queueLimit"
	// FullKV holds: with one replica (of this variant) less, too little of the KV cache would be spare.
	FullKV scaling.Code = "FullKV after > limit"
	// FullQueue holds: with one replica (of this variant) less, too little room in the queue would be spare.
	FullQueue scaling.Code = "FullQueue after > limit"
	// FullTie holds in mode Literal: with one replica less, the load would equal its limit up to Noise, and in decimals it
	// would be above.
	FullTie scaling.Code = "FullTie after == limit"
	// FullSaturated holds: with one replica less, the others would be saturated on average.
	FullSaturated scaling.Code = "FullSaturated after >= threshold"
	// SaturatedKV holds: a replica is saturated by its KV cache, so none is removed.
	SaturatedKV scaling.Code = "SaturatedKV kv >= threshold, saturated, replicas"
	// SaturatedQueue holds: a replica is saturated by its queue, so none is removed.
	SaturatedQueue scaling.Code = "SaturatedQueue queue >= threshold, saturated, replicas"
	// Missing holds: the load of a replica, the subject, is unknown, so none is removed.
	Missing scaling.Code = "Missing missing > none, replicas"
	// TooFew holds: no other replica could take the load.
	TooFew scaling.Code = "TooFew free < needed"
	// NoData decides Unknown: no replica has a value.
	NoData scaling.Code = "NoData replicas, missing"
	// Deficient sizes a scale-up by the rule Deficit: more capacity is lacking than is starting.
	Deficient scaling.Code = "Deficient lacking > coming"
	// Coming holds by the rule Deficit: the capacity that is lacking is already starting.
	Coming scaling.Code = "Coming lacking <= coming"
)

// Codes of a variant's rank in the decision.
const (
	// Cheapest grows the variant: no other that may grow costs less per capacity. next is the price of the next variant in
	// the order.
	Cheapest scaling.Code = "Cheapest price <= next"
	// Dearest shrinks the variant: no other that may shrink costs more per capacity. next is the price of the next variant
	// in the order.
	Dearest scaling.Code = "Dearest price >= next"
	// Alone grows or shrinks the variant: no other one may. (In mode Literal it only says that the variant was chosen.)
	Alone scaling.Code = "Alone price"
	// Dearer holds: another variant, the subject, grows, because it is cheaper, or as cheap and first by name.
	Dearer scaling.Code = "Dearer price >= cheapest"
	// Cheaper holds: another variant, the subject, shrinks, because it is dearer, or as dear and last by name.
	Cheaper scaling.Code = "Cheaper price <= dearest"
	// AtMax holds: the variant is at its maximum and may not grow.
	AtMax scaling.Code = "AtMax current >= max"
	// AtMin holds: the variant is at its minimum, or has one replica, and may not shrink.
	AtMin scaling.Code = "AtMin current <= least"
	// Pending holds: replicas of the variant are not ready, so it does not grow.
	Pending scaling.Code = "Pending pending > none"
	// Settling undoes a scale-down that has not been safe for long enough.
	Settling scaling.Code = "Settling held:s < window:s"
)

// Codes of a variant in transition, and of the others meanwhile.
const (
	// Growing continues an earlier scale-up of the variant that is not complete.
	Growing scaling.Code = "Growing desired > current"
	// Shrinking continues an earlier scale-down of the variant that is not complete.
	Shrinking scaling.Code = "Shrinking desired < current"
	// Starting holds: fewer replicas report than were asked for.
	Starting scaling.Code = "Starting reporting < current"
	// Stopping holds: more replicas report than were asked for.
	Stopping scaling.Code = "Stopping reporting > current"
	// Blocked holds: another variant of the model, the subject, is in transition, and its timeout has not passed.
	Blocked scaling.Code = "Blocked waited:s < timeout:s"
	// Frozen holds: another variant of the model, the subject, is in transition, and there is no timeout.
	Frozen scaling.Code = "Frozen"
	// Underway continues, for the model as a whole: variants are in transition to counts that were asked for earlier.
	Underway scaling.Code = "Underway variants > none"
	// SetAside holds: the variant has been in transition for so long that the other variants are decided without it.
	SetAside scaling.Code = "SetAside waited:s >= timeout:s"
)

// Codes of variants with missing or wrong data.
const (
	// NoState holds: replicas report for a variant for which no state is given.
	NoState scaling.Code = "NoState reporting > stated"
	// LeftOut holds in mode Literal: the variant has a state, but no replica of it reports.
	LeftOut scaling.Code = "LeftOut current, pending"
	// Contradicted holds: two states of the variant differ.
	Contradicted scaling.Code = "Contradicted"
	// Invalid holds: a field of the variant, the subject, is wrong.
	Invalid scaling.Code = "Invalid"
	// NoTarget decides Unknown: the variant's target does not exist.
	NoTarget scaling.Code = "NoTarget"
	// NoVariant decides Unknown: the Group's configuration has no variant with the target's name.
	NoVariant scaling.Code = "NoVariant"
)
