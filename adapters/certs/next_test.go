package certs_test

import (
	"crypto/rand"
	"crypto/x509"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/certs"
	"github.com/inferscale/inferscale/scaling"
)

// TestFirst has what is made of nothing.
func TestFirst(t *testing.T) {
	step := next(t, rules(), certs.State{}, "", start)
	require.Equal(t, []certs.Code{certs.CreateCA, certs.Publish, certs.IssueClient, certs.IssueServer}, codes(step.Actions))
	s := step.State
	require.Equal(t, certs.PhaseSteady, s.Authority.Phase)
	require.Equal(t, start, s.Material.Since)
	require.Equal(t, s.Authority.CA.Cert, s.Material.Bundle)

	ca, client, server := leaf(t, s.Authority.CA), leaf(t, s.Material.Client), leaf(t, s.Material.Server)
	require.Equal(t, start.Add(2*365*day), ca.NotAfter)
	require.True(t, ca.IsCA && ca.MaxPathLenZero)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, client.ExtKeyUsage)
	require.Empty(t, client.DNSNames)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, server.ExtKeyUsage)
	require.Equal(t, rules().DNSNames, server.DNSNames)
	require.Len(t, server.IPAddresses, 1)
	for _, c := range []*x509.Certificate{client, server} {
		require.Equal(t, start.Add(90*day), c.NotAfter)
		require.Equal(t, start.Add(-5*time.Minute), c.NotBefore)
		require.Equal(t, x509.ECDSA, c.PublicKeyAlgorithm)
		require.False(t, c.IsCA)
	}
	require.NotEqual(t, client.SerialNumber, server.SerialNumber)
	require.Equal(t, 127, client.SerialNumber.BitLen())
	require.NoError(t, verify(t, s.Material, s.Material, start))
	// Two thirds of 90 days and five minutes, counted from five minutes before.
	require.Equal(t, start.Add(60*day-100*time.Second), step.Next)

	again := next(t, rules(), s, "", step.Next.Add(-time.Second))
	require.Empty(t, again.Actions)
	require.Equal(t, s, again.State)
	require.Equal(t, step.Next, again.Next)
}

// TestRenewal has a leaf renewed at two thirds of its life and the trust unmoved.
func TestRenewal(t *testing.T) {
	step := next(t, rules(), certs.State{}, "", start)
	renewed := next(t, rules(), step.State, "", step.Next)
	require.Equal(t, []certs.Code{certs.IssueClient, certs.IssueServer}, codes(renewed.Actions))
	require.Equal(t, "IssueClient: two thirds of its life were over at 2026-03-01T23:58:20Z", renewed.Actions[0].String())
	require.Equal(t, step.State.Authority, renewed.State.Authority)
	require.Equal(t, start, renewed.State.Material.Since)
}

// TestOldSignsOnceMore: while one keeper switches, a slower one has the old CA sign once more. The old CA is then trusted
// until that has expired, as somebody may have read it.
func TestOldSignsOnceMore(t *testing.T) {
	first := next(t, rules(), certs.State{}, "", start)
	publish := next(t, rules(), first.State, "today", start.Add(10*day))
	at := publish.Next
	change := next(t, rules(), publish.State, "today", at)
	require.Equal(t, start.Add(90*day), change.State.Authority.OldUntil)

	other := rules() // gives the slower one a reason
	other.IPs = append(other.IPs, net.IPv6loopback)
	slower := next(t, other, publish.State, "today", at.Add(-time.Second))
	require.Equal(t, []certs.Code{certs.IssueServer}, codes(slower.Actions))
	require.NoError(t, leaf(t, slower.State.Material.Server).CheckSignatureFrom(leaf(t, publish.State.Authority.CA)))

	s := next(t, other, certs.State{Authority: change.State.Authority, Material: slower.State.Material}, "today", at.Add(time.Second))
	until := at.Add(90*day - time.Second)
	require.Equal(t, until, s.State.Authority.OldUntil)
	for s.Next.Before(until) {
		s = next(t, other, s.State, "today", s.Next)
		require.NotContains(t, codes(s.Actions), certs.DropCA)
	}
	require.Equal(t, []certs.Code{certs.DropCA, certs.Publish}, codes(next(t, other, s.State, "today", s.Next).Actions))
}

// TestNames has the server's certificate follow the rules, and the client's left as it is.
func TestNames(t *testing.T) {
	step := next(t, rules(), certs.State{}, "", start)
	r := rules()
	r.IPs = append(r.IPs, net.IPv6loopback)
	other := next(t, r, step.State, "", start)
	require.Equal(t, []certs.Code{certs.IssueServer}, codes(other.Actions))
	require.Len(t, leaf(t, other.State.Material.Server).IPAddresses, 2)
	require.Empty(t, next(t, r, other.State, "", start).Actions)
}

// TestRotation is the whole story of a rotation that was asked for, with what is due when.
func TestRotation(t *testing.T) {
	for _, tt := range []struct {
		name      string
		dropAfter time.Duration
		drop      time.Duration // from start
	}{
		{"until what the old one signed has expired", 0, 90*day + 5*time.Minute},
		{"early", 2 * day, 13*day + 10*time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rules()
			r.DropAfter = tt.dropAfter
			first := next(t, r, certs.State{}, "", start)
			at := start.Add(10 * day)

			publish := next(t, r, first.State, "today", at)
			require.Equal(t, []certs.Code{certs.PublishCA, certs.Publish}, codes(publish.Actions))
			require.Equal(t, certs.PhasePublish, publish.State.Authority.Phase)
			require.Len(t, parse(t, publish.State.Material.Bundle), 2)
			require.Equal(t, first.State.Material.Client, publish.State.Material.Client)
			require.Equal(t, at.Add(day+5*time.Minute), publish.Next)
			require.Empty(t, next(t, r, publish.State, "today", publish.Next.Add(-time.Second)).Actions)

			at = publish.Next
			change := next(t, r, publish.State, "today", at)
			require.Equal(t, []certs.Code{certs.SwitchCA, certs.Publish, certs.IssueClient, certs.IssueServer}, codes(change.Actions))
			a := change.State.Authority
			require.Equal(t, certs.PhaseSwitch, a.Phase)
			require.Equal(t, publish.State.Authority.Next, a.CA)
			require.Equal(t, publish.State.Authority.CA.Cert, a.Old)
			require.Equal(t, start.Add(90*day), a.OldUntil)
			require.Len(t, parse(t, change.State.Material.Bundle), 2)
			require.NoError(t, leaf(t, change.State.Material.Client).CheckSignatureFrom(leaf(t, a.CA)))

			// Another request has to wait.
			require.Empty(t, next(t, r, change.State, "tomorrow", at).Actions)

			s := change
			for s.Next.Before(start.Add(tt.drop)) { // renewals in between
				s = next(t, r, s.State, "today", s.Next)
				require.NotContains(t, codes(s.Actions), certs.DropCA)
			}
			require.Equal(t, start.Add(tt.drop), s.Next)
			drop := next(t, r, s.State, "today", s.Next)
			require.Equal(t, []certs.Code{certs.DropCA, certs.Publish}, codes(drop.Actions))
			require.Equal(t, certs.PhaseSteady, drop.State.Authority.Phase)
			require.Empty(t, drop.State.Authority.Old)
			require.Len(t, parse(t, drop.State.Material.Bundle), 1)

			// The one that waited begins with the drop.
			require.Equal(t, []certs.Code{certs.DropCA, certs.PublishCA, certs.Publish}, codes(next(t, r, s.State, "tomorrow", s.Next).Actions))
		})
	}
}

// TestAge has a CA rotated when a third of its life is left.
func TestAge(t *testing.T) {
	step := next(t, rules(), certs.State{}, "", start)
	ca := leaf(t, step.State.Authority.CA)
	third := ca.NotAfter.Sub(ca.NotBefore) / 3
	for step.State.Authority.Phase == certs.PhaseSteady {
		require.NotContains(t, codes(step.Actions), certs.PublishCA)
		step = next(t, rules(), step.State, "", step.Next)
	}
	require.Contains(t, codes(step.Actions), certs.PublishCA)
	require.Equal(t, ca.NotAfter.Add(-third), step.State.Material.Since)
}

// TestRequestDuringPublish counts as met by the rotation that is under way.
func TestRequestDuringPublish(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	s = next(t, rules(), s, "a", start).State
	step := next(t, rules(), s, "b", start)
	require.Empty(t, step.Actions)
	require.Equal(t, "b", step.State.Authority.Request)
}

// TestExpired has all made anew after a sleep that was too long, and nobody asked to wait for an overlap.
func TestExpired(t *testing.T) {
	first := next(t, rules(), certs.State{}, "", start).State
	published := next(t, rules(), first, "today", start).State
	changed := next(t, rules(), published, "today", start.Add(2*day)).State
	for _, tt := range []struct {
		name  string
		s     certs.State
		at    time.Duration
		codes []certs.Code
		phase certs.Phase
	}{
		{"leaves", first, 100 * day, []certs.Code{certs.IssueClient, certs.IssueServer}, certs.PhaseSteady},
		{"CA", first, 731 * day, []certs.Code{certs.ReplaceCA, certs.Publish, certs.IssueClient, certs.IssueServer}, certs.PhaseSteady},
		{"CA and next", published, 731 * day, []certs.Code{certs.ReplaceCA, certs.SwitchCA, certs.Publish, certs.IssueClient, certs.IssueServer}, certs.PhaseSteady},
		{"CA and old", changed, 740 * day, []certs.Code{certs.ReplaceCA, certs.Publish, certs.IssueClient, certs.IssueServer}, certs.PhaseSteady},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := start.Add(tt.at)
			step := next(t, rules(), tt.s, "", at)
			require.Equal(t, tt.codes, codes(step.Actions))
			require.Equal(t, tt.phase, step.State.Authority.Phase)
			require.NoError(t, verify(t, step.State.Material, step.State.Material, at))
			require.Empty(t, next(t, rules(), step.State, "", at).Actions)
		})
	}
}

// TestShortOfTime has the Switch come before the old CA expires, though the overlap is not over.
func TestShortOfTime(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	end := leaf(t, s.Authority.CA).NotAfter
	publish := next(t, rules(), s, "", end.Add(-time.Hour))
	require.Equal(t, certs.PhasePublish, publish.State.Authority.Phase)
	require.Equal(t, end, leaf(t, publish.State.Material.Client).NotAfter) // no leaf outlives its CA
	change := next(t, rules(), publish.State, "", end.Add(-5*time.Minute))
	require.Equal(t, certs.PhaseSwitch, change.State.Authority.Phase)
}

// TestLostCA has certificates whose CA's key is gone live on until a new CA is known to everybody.
func TestLostCA(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	at := start.Add(5 * day)
	adopt := next(t, rules(), certs.State{Material: s.Material}, "", at)
	require.Equal(t, []certs.Code{certs.AdoptCA, certs.Publish}, codes(adopt.Actions))
	require.Equal(t, certs.PhasePublish, adopt.State.Authority.Phase)
	require.Empty(t, adopt.State.Authority.CA.Key)
	require.Equal(t, s.Material.Client, adopt.State.Material.Client)
	require.Empty(t, next(t, rules(), adopt.State, "", at.Add(day)).Actions)
	change := next(t, rules(), adopt.State, "", adopt.Next)
	require.Equal(t, at.Add(day+5*time.Minute), adopt.Next)
	require.Equal(t, certs.PhaseSwitch, change.State.Authority.Phase)
	require.NoError(t, verify(t, adopt.State.Material, change.State.Material, adopt.Next))

	// Leaves that are about to expire do not wait for the overlap.
	at = start.Add(90*day - time.Hour)
	adopt = next(t, rules(), certs.State{Material: s.Material}, "", at)
	require.Equal(t, start.Add(90*day-5*time.Minute), adopt.Next)
	require.Equal(t, certs.PhaseSwitch, next(t, rules(), adopt.State, "", adopt.Next).State.Authority.Phase)
	// Nor does material that is gone.
	require.Equal(t, certs.PhaseSwitch, next(t, rules(), certs.State{Authority: adopt.State.Authority}, "", at).State.Authority.Phase)

	// Leaves that have expired are not worth it.
	late := next(t, rules(), certs.State{Material: s.Material}, "", start.Add(91*day))
	require.Equal(t, certs.CreateCA, late.Actions[0].Code)
}

// TestLostMaterial has it made anew, and the overlap counted anew.
func TestLostMaterial(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	publish := next(t, rules(), s, "today", start).State
	at := start.Add(30 * time.Hour)
	lost := next(t, rules(), certs.State{Authority: publish.Authority}, "today", at)
	require.Equal(t, []certs.Code{certs.Publish, certs.IssueClient, certs.IssueServer}, codes(lost.Actions))
	require.Equal(t, certs.PhasePublish, lost.State.Authority.Phase)
	require.Equal(t, at, lost.State.Material.Since)
}

// TestLateWrite is a crash between the two writes that lasted longer than the overlap, which counts from the second.
func TestLateWrite(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	crashed := certs.State{Authority: next(t, rules(), s, "today", start).State.Authority, Material: s.Material}
	at := start.Add(20 * day)
	step := next(t, rules(), crashed, "today", at)
	require.Equal(t, certs.PhasePublish, step.State.Authority.Phase)
	require.Equal(t, at, step.State.Material.Since)
}

// TestReadingOrder is why a keeper reads the material before the authority: one that read the authority before a
// rotation and the material after the Switch would take the CA that signs out of ca.crt. (TestEnsure has the order.)
func TestReadingOrder(t *testing.T) {
	before := next(t, rules(), certs.State{}, "", start).State
	publish := next(t, rules(), before, "today", start)
	at := publish.Next
	after := next(t, rules(), publish.State, "today", at).State
	wrong := next(t, rules(), certs.State{Authority: before.Authority, Material: after.Material}, "", at).State
	require.Error(t, verify(t, after.Material, wrong.Material, at))
	right := next(t, rules(), certs.State{Authority: after.Authority, Material: before.Material}, "", at).State
	require.NoError(t, verify(t, publish.State.Material, right.Material, at))
}

// TestClockBehind: a clock that is behind causes nothing, whatever is not valid yet by it, and goes on where it was.
func TestClockBehind(t *testing.T) {
	first := next(t, rules(), certs.State{}, "", start)
	renewed := next(t, rules(), first.State, "", start.Add(70*day)).State
	published := next(t, rules(), renewed, "today", start.Add(80*day)).State
	changed := next(t, rules(), published, "today", start.Add(82*day)).State
	for _, tt := range []struct {
		name string
		s    certs.State
		at   time.Time
		want string
	}{
		{"after the first start", first.State, start.Add(-6 * time.Minute), "authority: tls.crt: it is valid from 2025-12-31T23:55:00Z only, and the clock says 2025-12-31T23:54:00Z: "},
		{"a day", first.State, start.Add(-day), "authority: tls.crt: "},
		{"at the epoch", renewed, time.Unix(1000, 0), "authority: tls.crt: "},
		{"before the renewal", renewed, start.Add(69 * day), "material: tls.crt: it is valid from 2026-03-11T23:55:00Z only"},
		{"before the Publish", published, start.Add(79 * day), "authority: next.crt: "},
		{"before the Switch", changed, start.Add(81 * day), "material: tls.crt: "},
		{"after the CA was lost", certs.State{Material: first.State.Material}, start.Add(-day), "material: tls.crt: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step, err := certs.Next(rules(), tt.s, "another", tt.at, rand.Reader)
			require.ErrorContains(t, err, tt.want)
			require.ErrorIs(t, err, certs.ErrClock)
			require.Equal(t, certs.Step{}, step)
		})
	}
	// Five minutes are what clocks may differ.
	require.Empty(t, next(t, rules(), first.State, "", start.Add(-5*time.Minute)).Actions)
	// Right again, it is as if nothing had been.
	require.Empty(t, next(t, rules(), renewed, "", start.Add(71*day)).Actions)
}

// TestClockBack has a time in the future counted from now.
func TestClockBack(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	s = next(t, rules(), s, "today", start).State
	s.Material.Since = start.Add(1000 * day)
	step := next(t, rules(), s, "today", start.Add(time.Minute))
	require.Empty(t, step.Actions)
	require.Equal(t, start.Add(time.Minute), step.State.Material.Since)
}

// TestNoEntropy fails, and makes nothing.
func TestNoEntropy(t *testing.T) {
	_, err := certs.Next(rules(), certs.State{}, "", start, iotest.ErrReader(iotest.ErrTimeout))
	require.ErrorIs(t, err, iotest.ErrTimeout)
}

// TestNextDamaged has every part of the state damaged, and named.
func TestNextDamaged(t *testing.T) {
	s := next(t, rules(), certs.State{}, "", start).State
	other := next(t, rules(), certs.State{}, "", start).State
	publish := next(t, rules(), s, "today", start).State
	for _, tt := range []struct {
		want   string
		damage func(*certs.State)
	}{
		{"authority: tls.crt: must be one certificate in PEM", func(s *certs.State) { s.Authority.CA.Cert = []byte("x") }},
		{"authority: tls.crt: must be the certificate of a CA", func(s *certs.State) { s.Authority.CA = s.Material.Client }},
		{"authority: tls.key: must be the private key in PEM of tls.crt", func(s *certs.State) { s.Authority.CA.Key = other.Authority.CA.Key }},
		{"authority: tls.key: must not be empty", func(s *certs.State) { s.Authority.CA.Key = nil }},
		{"authority: next.crt: must not be there in this phase", func(s *certs.State) { s.Authority.Next = publish.Authority.Next }},
		{"authority: next.crt: must not be empty", func(s *certs.State) { s.Authority.Phase = certs.PhasePublish }},
		{"authority: old.crt: must not be empty", func(s *certs.State) { s.Authority.Phase = certs.PhaseSwitch }},
		{"authority: old.crt: must not be there in this phase", func(s *certs.State) { s.Authority.Old = other.Authority.CA.Cert }},
		{"authority: state: phase must be Steady, Publish or Switch", func(s *certs.State) { s.Authority.Phase = "Drop" }},
		{"material: ca.crt: must be certificates of CAs in PEM", func(s *certs.State) { s.Material.Bundle = s.Material.Client.Cert }},
		{"material: ca.crt: must be certificates of CAs in PEM", func(s *certs.State) { s.Material.Bundle = s.Material.Client.Key }},
		{"material: ca.crt: must not be empty", func(s *certs.State) { s.Material.Bundle = nil }},
		{"material: tls.crt: must be one certificate", func(s *certs.State) {
			s.Material.Client.Cert = slices.Concat(s.Material.Client.Cert, s.Material.Client.Cert)
		}},
		{"material: tls.key: must be the private key in PEM of tls.crt", func(s *certs.State) { s.Material.Client.Key = s.Material.Server.Key }},
		{"material: server.crt: must not be empty", func(s *certs.State) { s.Material.Server.Cert = nil }},
		{"material: server.key: must be the private key in PEM of server.crt", func(s *certs.State) { s.Material.Server.Key = s.Material.Server.Key[:100] }},
	} {
		bad := s
		tt.damage(&bad)
		_, err := certs.Next(rules(), bad, "", start, rand.Reader)
		require.ErrorContains(t, err, tt.want)
		require.ErrorIs(t, err, certs.ErrDamaged)
		var se *certs.SecretError
		require.ErrorAs(t, err, &se)
	}
}

// TestRules has every rule broken.
func TestRules(t *testing.T) {
	require.NoError(t, rules().Validate())
	require.NoError(t, certs.Rules{DNSNames: []string{"*.Keda.svc", "xn--bcher-kva.example"}}.Validate())
	short := certs.Rules{DNSNames: []string{"a"}, CALife: time.Hour, LeafLife: 15 * time.Minute, Overlap: 3 * time.Minute}
	require.NoError(t, short.Validate())
	for _, tt := range []struct {
		want string
		r    certs.Rules
	}{
		{"dnsNames: []: must have a name, or ips an address", certs.Rules{}},
		{"dnsNames: [a ]: must not have an empty name", certs.Rules{DNSNames: []string{"a", ""}}},
		{"must have addresses of 4 or 16 bytes", certs.Rules{IPs: []net.IP{{1, 2}}}},
		{"overlap: -1s: must be at least 1s", certs.Rules{DNSNames: []string{"a"}, Overlap: -time.Second}},
		{"overlap: 720h0m0s: must be, with 10m0s for clocks and writes, at most a third of leafLife 2160h0m0s", certs.Rules{DNSNames: []string{"a"}, Overlap: 30 * day}},
		{"leafLife: 6000h0m0s: must be, with overlap and 10m0s for clocks and writes, at most a third of caLife 17520h0m0s", certs.Rules{DNSNames: []string{"a"}, LeafLife: 250 * day}},
		{"overlap: 2562047h47m16.854775807s: must be at most 876000h0m0s, 100 years", certs.Rules{DNSNames: []string{"a"}, Overlap: math.MaxInt64}},
		{"leafLife: 2562047h47m16.854775807s: must be at most", certs.Rules{DNSNames: []string{"a"}, LeafLife: math.MaxInt64}},
		{"dnsNames: \"bücher.example\": must be a name in DNS, without a scheme or a port; addresses are ips", certs.Rules{DNSNames: []string{"bücher.example"}}},
		{"dnsNames: \"https://a\": must be a name in DNS", certs.Rules{DNSNames: []string{"https://a"}}},
		{"dnsNames: \"a:10450\": must be a name in DNS", certs.Rules{DNSNames: []string{"a:10450"}}},
		{"dnsNames: \"10.0.0.1\": must be a name in DNS", certs.Rules{DNSNames: []string{"10.0.0.1"}}},
		{"dropAfter: 1h0m0s: must be at least overlap 24h0m0s, or 0", certs.Rules{DNSNames: []string{"a"}, DropAfter: time.Hour}},
	} {
		err := tt.r.Validate()
		require.ErrorContains(t, err, tt.want)
		var fe *scaling.FieldError
		require.ErrorAs(t, err, &fe)
		_, err = certs.Next(tt.r, certs.State{}, "", start, rand.Reader)
		require.ErrorContains(t, err, tt.want)
	}
	require.NoError(t, certs.Rules{DNSNames: []string{"keda_scaler"}}.Validate(), "as services of Docker Compose have")
	for _, all := range []string{"dnsNames: ", "overlap: ", "dropAfter: "} { // every rule that is broken is told
		require.ErrorContains(t, certs.Rules{DNSNames: []string{"https://a"}, Overlap: 80 * day, DropAfter: time.Hour}.Validate(), all)
	}
	require.Equal(t, "scaler scaler.keda scaler.keda.svc scaler.keda.svc.cluster.local", strings.Join(certs.ServiceNames("scaler", "keda", ""), " "))
	require.Equal(t, "a.b.svc.example.org", certs.ServiceNames("a", "b", "example.org")[3])
}
