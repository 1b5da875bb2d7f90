package certs

import (
	"fmt"
	"time"
)

// A Phase is a phase of the rotation of the CA.
type Phase string

// The phases, in their order. The package comment says what ends each.
const (
	// PhaseSteady means that one CA signs and is trusted. It is the phase of an empty state.
	PhaseSteady Phase = "Steady"
	// PhasePublish means that a next CA is trusted but does not sign yet.
	PhasePublish Phase = "Publish"
	// PhaseSwitch means that the next CA has become the CA that signs, and that the old CA is still trusted.
	PhaseSwitch Phase = "Switch"
)

// A Pair is a certificate and its private key, both in PEM. It does not print its key.
type Pair struct {
	Cert, Key []byte
}

// String returns the numbers of bytes, and none of the content.
func (p Pair) String() string {
	return fmt.Sprintf("{certificate of %d bytes, key of %d}", len(p.Cert), len(p.Key))
}

// GoString returns String, for %#v.
func (p Pair) GoString() string { return p.String() }

// MarshalJSON writes String: a Pair is stored in Secrets only.
func (p Pair) MarshalJSON() ([]byte, error) { return []byte(`"` + p.String() + `"`), nil }

// An Authority is the CA and the state of its rotation. The zero value is that of a first start.
type Authority struct {
	Phase Phase
	// CA is the CA that signs. Its key is missing in PhasePublish if its Secret was lost: then it signs nothing more.
	CA Pair
	// Next is, in PhasePublish, the CA that will sign.
	Next Pair
	// Old is, in PhaseSwitch, the certificate of the CA that signed before. Its key is deleted.
	Old []byte
	// OldUntil is, in PhaseSwitch, when the last certificate signed by Old expires.
	OldUntil time.Time
	// Request is the last request for a rotation that was met.
	Request string
}

func (a Authority) empty() bool {
	return a.Phase == "" && len(a.CA.Cert)+len(a.CA.Key)+len(a.Next.Cert)+len(a.Next.Key)+len(a.Old) == 0
}

// Material has the certificates and keys that client and server read. The zero value has none.
type Material struct {
	Bundle []byte // every trusted CA's certificate, in PEM
	Client Pair
	Server Pair
	// Since is the time since which Bundle and the CA that signed the pairs have not changed. A zero time, or one after now,
	// counts as now.
	Since time.Time
}

func (m Material) empty() bool {
	return len(m.Bundle)+len(m.Client.Cert)+len(m.Client.Key)+len(m.Server.Cert)+len(m.Server.Key) == 0
}

// A State is the whole state of the certificates. It is plain data; its zero value is a fresh start.
type State struct {
	Authority Authority
	Material  Material
}

// A Code is a kind of action.
type Code string

// The codes of actions.
const (
	CreateCA    Code = "CreateCA"    // there was no CA
	AdoptCA     Code = "AdoptCA"     // the CA's key was lost: its certificates live on until a new CA takes over
	ReplaceCA   Code = "ReplaceCA"   // the CA had expired: a new one took over at once
	PublishCA   Code = "PublishCA"   // a next CA was made and is trusted from now on
	SwitchCA    Code = "SwitchCA"    // the next CA signs from now on
	DropCA      Code = "DropCA"      // the old CA is trusted no more
	Publish     Code = "Publish"     // ca.crt was not what it has to be
	IssueClient Code = "IssueClient" // the client has a new certificate
	IssueServer Code = "IssueServer" // the server has a new certificate
)

// An Action is an action of Next, with its reason.
type Action struct {
	Code   Code
	Reason string // "a third of its life is left: expires 2027-01-01T00:00:00Z"
}

// String returns "Code: reason".
func (a Action) String() string { return string(a.Code) + ": " + a.Reason }
