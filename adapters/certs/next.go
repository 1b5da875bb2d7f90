package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// The names of the parts of a State in errors.
const (
	whereAuthority = "authority"
	whereMaterial  = "material"
)

// A Step is the result of Next.
type Step struct {
	State   State
	Actions []Action  // in their order; none if State is unchanged
	Next    time.Time // when the next action is due; not before now
}

// Next returns the next state. It does no I/O except reading entropy, for keys and serial numbers, and keeps no state. If
// nothing is due it returns the state unchanged. Store Authority first and Material after it; the package comment says what
// happens after a crash between the two.
//
// request is a text with which a person requests a rotation of the CA. A request that is not empty and differs from the last
// one that was met begins a rotation in PhaseSteady, counts as met in PhasePublish, and has to wait in PhaseSwitch.
//
// A clock that is behind causes no changes: a certificate that is not valid yet was made by a clock that was right, or ahead
// of this one, and is not replaced.
//
// An error is either about the rules or a *SecretError about a part of the state that cannot be used, or cannot be used yet.
// Then nothing was done.
func Next(r Rules, s State, request string, now time.Time, entropy io.Reader) (Step, error) {
	if err := r.Validate(); err != nil {
		return Step{}, err
	}
	r = r.orDefault()
	exact := now
	now = now.UTC().Truncate(time.Second) // the resolution of times in certificates
	t := turn{issuer: issuer{rules: r, now: now, entropy: entropy}, request: request}
	var err error
	if t.a, err = parseAuthority(whereAuthority, s.Authority); err != nil {
		return Step{}, err
	}
	if t.m, err = parseMaterial(whereMaterial, s.Material); err != nil {
		return Step{}, err
	}
	for _, do := range []func() error{t.clock, t.found, t.replace, t.drop, t.change, t.begin, t.certify} {
		if err := do(); err != nil {
			return Step{}, err
		}
	}
	return Step{State: t.state(), Actions: t.actions, Next: later(t.next(), exact)}, nil
}

// A turn is one call of Next.
type turn struct {
	issuer
	a       authority
	m       material
	request string
	actions []Action
}

func (t *turn) did(code Code, format string, args ...any) {
	t.actions = append(t.actions, Action{Code: code, Reason: fmt.Sprintf(format, args...)})
}

// clock returns an error if a certificate is not valid yet.
func (t *turn) clock() error {
	for _, c := range []struct {
		what        *identity
		secret, key string
	}{
		{t.a.ca, whereAuthority, keyTLSCert},
		{t.a.next, whereAuthority, keyNextCert},
		{t.m.client, whereMaterial, keyTLSCert},
		{t.m.server, whereMaterial, keyServerCert},
	} {
		if c.what != nil && t.now.Before(c.what.cert.NotBefore) {
			return &SecretError{
				Secret: c.secret, Key: c.key, Err: ErrClock,
				Rule: "it is valid from " + stamp(c.what.cert.NotBefore) + " only, and the clock says " + stamp(t.now),
			}
		}
	}
	return nil
}

// found makes the first CA, or a next CA if the CA of the existing certificates was lost.
func (t *turn) found() error {
	if t.a.ca != nil {
		return nil
	}
	fresh, err := t.ca()
	if err != nil {
		return err
	}
	t.a.Request = t.request
	lost := t.adoptable()
	if lost == nil {
		t.a.Phase, t.a.ca = PhaseSteady, fresh
		t.did(CreateCA, "there was none")
		return nil
	}
	t.a.Phase, t.a.ca, t.a.next = PhasePublish, &identity{pair: Pair{Cert: encodeCert(lost)}, cert: lost}, fresh
	t.did(AdoptCA, "its key was lost, its certificates are good until %s", stamp(t.leastLeaf()))
	return nil
}

// adoptable returns the CA that signed the certificates in use, or nil.
func (t *turn) adoptable() *x509.Certificate {
	if t.m.client == nil || !t.valid(t.m.client.cert) || !t.valid(t.m.server.cert) {
		return nil
	}
	i := slices.IndexFunc(t.m.bundle, func(ca *x509.Certificate) bool {
		return t.valid(ca) && signed(t.m.client.cert, ca) && signed(t.m.server.cert, ca)
	})
	if i < 0 {
		return nil
	}
	return t.m.bundle[i]
}

// replace replaces a CA that has expired: the next CA in PhasePublish, else the one that signs. change handles the expiry of
// the CA that signs in PhasePublish.
func (t *turn) replace() error {
	which := &t.a.ca
	if t.a.Phase == PhasePublish {
		which = &t.a.next
	}
	if t.valid((*which).cert) {
		return nil
	}
	fresh, err := t.ca()
	if err != nil {
		return err
	}
	t.did(ReplaceCA, "it was valid from %s to %s only", stamp((*which).cert.NotBefore), stamp((*which).cert.NotAfter))
	*which = fresh
	if t.request != "" {
		t.a.Request = t.request
	}
	if t.a.Phase == PhaseSwitch {
		t.steady()
	}
	return nil
}

// drop ends PhaseSwitch when that is due.
func (t *turn) drop() error {
	if t.a.Phase != PhaseSwitch {
		return nil
	}
	t.a.OldUntil = later(t.a.OldUntil, t.signedUntil(t.a.old)) // a second writer may have signed with the old CA once more
	if at := t.dropAt(); !t.now.Before(at) {
		t.did(DropCA, "nothing that it signed is in use since %s", stamp(at))
		t.steady()
	}
	return nil
}

// steady forgets the old CA.
func (t *turn) steady() {
	t.a.Phase, t.a.old, t.a.Old, t.a.OldUntil = PhaseSteady, nil, nil, time.Time{}
}

func (t *turn) dropAt() time.Time {
	at := t.a.OldUntil
	if t.rules.DropAfter > 0 && t.published() {
		at = earlier(at, t.m.Since.Add(t.rules.DropAfter))
	}
	return at.Add(t.rules.slack())
}

// change ends PhasePublish when that is due.
func (t *turn) change() error {
	if t.a.Phase != PhasePublish {
		return nil
	}
	expired := !t.valid(t.a.ca.cert)
	stuck := t.a.ca.key == nil && (t.m.client == nil || !t.good(t.m.client.cert) || !t.good(t.m.server.cert))
	switch {
	case expired:
		t.did(SwitchCA, "the old one expired at %s", stamp(t.a.ca.cert.NotAfter))
	case stuck:
		t.did(SwitchCA, "the old one's key is lost, and a certificate is needed")
	case t.published() && !t.now.Before(t.switchAt()):
		t.did(SwitchCA, "it is trusted since %s", stamp(t.m.Since))
	default:
		return nil
	}
	old := t.a.ca
	t.a.Phase, t.a.ca, t.a.next = PhaseSteady, t.a.next, nil
	if !expired {
		t.a.Phase, t.a.old, t.a.Old, t.a.OldUntil = PhaseSwitch, old.cert, old.pair.Cert, later(t.now, t.signedUntil(old.cert))
	}
	return nil
}

// switchAt returns when PhasePublish ends: after Overlap, or earlier if the old CA would expire before, or if its key is lost
// and the certificates that it signed would expire before.
func (t *turn) switchAt() time.Time {
	end := t.a.ca.cert.NotAfter
	if t.a.ca.key == nil {
		end = t.leastLeaf()
	}
	return earlier(t.m.Since.Add(t.rules.Overlap+t.rules.slack()), end.Add(-t.rules.slack()))
}

// begin begins PhasePublish when that is due.
func (t *turn) begin() error {
	asked := t.request != "" && t.request != t.a.Request
	if t.a.Phase == PhasePublish && asked {
		t.a.Request = t.request
	}
	at := renewAt(t.a.ca.cert)
	if t.a.Phase != PhaseSteady || !asked && t.now.Before(at) {
		return nil
	}
	fresh, err := t.ca()
	if err != nil {
		return err
	}
	if asked {
		t.did(PublishCA, "asked for by %q", t.request)
		t.a.Request = t.request
	} else {
		t.did(PublishCA, "two thirds of the old one's life were over at %s", stamp(at))
	}
	t.a.Phase, t.a.next = PhasePublish, fresh
	return nil
}

// certify updates the material to match the authority.
func (t *turn) certify() error {
	moved := t.m.Since.IsZero() || t.m.Since.After(t.now)
	if bundle := t.bundle(); !bytes.Equal(bundle, t.m.Bundle) {
		t.did(Publish, "ca.crt has %d of %d bytes", len(bundle), len(t.m.Bundle))
		t.m.Bundle, moved = bundle, true
	}
	for _, leaf := range []struct {
		what  **identity
		usage x509.ExtKeyUsage
		make  func(*identity) (*identity, error)
		code  Code
	}{
		{&t.m.client, x509.ExtKeyUsageClientAuth, t.client, IssueClient},
		{&t.m.server, x509.ExtKeyUsageServerAuth, t.server, IssueServer},
	} {
		why := t.why(*leaf.what, leaf.usage)
		if why == "" || t.a.ca.key == nil {
			continue
		}
		moved = moved || *leaf.what == nil || !signed((*leaf.what).cert, t.a.ca.cert)
		fresh, err := leaf.make(t.a.ca)
		if err != nil {
			return err
		}
		*leaf.what = fresh
		t.did(leaf.code, "%s", why)
	}
	if moved {
		t.m.Since = t.now
	}
	return nil
}

// why returns why a certificate must be replaced, or "" if it need not be.
func (t *turn) why(leaf *identity, usage x509.ExtKeyUsage) string {
	switch {
	case leaf == nil:
		return "there was none"
	case !signed(leaf.cert, t.a.ca.cert):
		return "another CA signs now"
	case !t.valid(leaf.cert):
		return "it was valid from " + stamp(leaf.cert.NotBefore) + " to " + stamp(leaf.cert.NotAfter) + " only"
	case !t.now.Before(renewAt(leaf.cert)):
		return "two thirds of its life were over at " + stamp(renewAt(leaf.cert))
	case !slices.Equal(leaf.cert.ExtKeyUsage, []x509.ExtKeyUsage{usage}):
		return "it was for another use"
	case usage == x509.ExtKeyUsageServerAuth && !t.named(leaf.cert):
		return fmt.Sprintf("it was for %v %v", leaf.cert.DNSNames, leaf.cert.IPAddresses)
	}
	return ""
}

func (t *turn) named(c *x509.Certificate) bool {
	return slices.Equal(c.DNSNames, t.rules.DNSNames) && slices.EqualFunc(c.IPAddresses, t.rules.IPs, net.IP.Equal)
}

// bundle returns the required content of ca.crt.
func (t *turn) bundle() []byte {
	var b bytes.Buffer
	b.Write(t.a.ca.pair.Cert)
	if t.a.next != nil {
		b.Write(t.a.next.pair.Cert)
	}
	b.Write(t.a.Old)
	return b.Bytes()
}

// published reports whether the material matches the authority, so that its Since counts.
func (t *turn) published() bool {
	return t.m.client != nil && bytes.Equal(t.m.Bundle, t.bundle()) &&
		signed(t.m.client.cert, t.a.ca.cert) && signed(t.m.server.cert, t.a.ca.cert)
}

// next returns when the next action is due, as a whole second, because now is a whole second in the turn that does it.
func (t *turn) next() time.Time {
	var at time.Time
	switch t.a.Phase {
	case PhasePublish:
		at = t.switchAt()
	case PhaseSwitch:
		at = t.dropAt()
	default:
		at = renewAt(t.a.ca.cert)
	}
	if t.a.ca.key != nil {
		at = earlier(at, earlier(renewAt(t.m.client.cert), renewAt(t.m.server.cert)))
	}
	return at.Add(time.Second - 1).Truncate(time.Second)
}

func (t *turn) state() State {
	s := State{Authority: t.a.Authority, Material: t.m.Material}
	s.Authority.CA = t.a.ca.pair
	s.Authority.Next = Pair{}
	if t.a.next != nil {
		s.Authority.Next = t.a.next.pair
	}
	s.Material.Client, s.Material.Server = t.m.client.pair, t.m.server.pair
	return s
}

// signedUntil returns when the last certificate in use that ca signed expires, or zero if there is none.
func (t *turn) signedUntil(ca *x509.Certificate) time.Time {
	var until time.Time
	for _, leaf := range []*identity{t.m.client, t.m.server} {
		if leaf != nil && signed(leaf.cert, ca) {
			until = later(until, leaf.cert.NotAfter)
		}
	}
	return until
}

func (t *turn) leastLeaf() time.Time {
	return earlier(t.m.client.cert.NotAfter, t.m.server.cert.NotAfter)
}

func (t *turn) good(leaf *x509.Certificate) bool {
	return t.valid(leaf) && signed(leaf, t.a.ca.cert)
}

func (t *turn) valid(c *x509.Certificate) bool {
	return !t.now.Before(c.NotBefore) && !t.now.After(c.NotAfter)
}

// renewAt returns when two thirds of a certificate's life are over.
func renewAt(c *x509.Certificate) time.Time {
	return c.NotAfter.Add(-c.NotAfter.Sub(c.NotBefore) / 3)
}

// signed reports whether ca signed leaf. It compares the key IDs first, because that is cheap.
func signed(leaf, ca *x509.Certificate) bool {
	return bytes.Equal(leaf.AuthorityKeyId, ca.SubjectKeyId) && leaf.CheckSignatureFrom(ca) == nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
