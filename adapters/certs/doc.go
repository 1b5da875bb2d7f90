// Package certs manages the certificates between KEDA and the external scaler: it makes and renews them, rotates the CA
// without a failed call, and serves with them.
//
// # The story
//
// A [Keeper], run by the leader, keeps two Secrets. KEDA and the server read the first, of type kubernetes.io/tls:
//
//	ca.crt                   every trusted CA
//	tls.crt, tls.key         KEDA's pair, for clients only
//	server.crt, server.key   the server's pair, for servers only
//
// The second has what KEDA must not read, the CA's private key, and what the rotation must remember: tls.crt and tls.key, the
// CA that signs now; next.crt and next.key, the CA that will sign next; old.crt, the CA that signed before; state, a JSON. Keys are
// ECDSA on P-256, serial numbers are random. A leaf is replaced when a third of its life is left ([Rules] has the lifetimes), or
// when its names differ from those of the rules.
//
// A [Reader] gives a server its TLS configuration: certificate and CAs are read at every handshake, from a [SecretSource]
// (the cache of an informer) or from [Files]. [KeepAuthentication] maintains the ClusterTriggerAuthentication through which
// KEDA finds its pair.
//
// All decisions are made by [Next], a function of state and time.
//
// # The rotation
//
// A CA is replaced when a third of its life is left, or on request ([RotateAnnotation], [Keeper.RotateCA]). Times count
// from when a phase can be read in the first Secret, not from when it was decided.
//
//	Publish   A next CA is made. ca.crt has both CAs; all leaves are still signed by the old one.
//	          Ends after Overlap: by then every reader has read both.
//	Switch    Both leaves are replaced, signed by the next CA, and the old CA's key is deleted. ca.crt has both CAs.
//	          Ends when everything that the old CA signed has expired, or after DropAfter.
//	Steady    ca.crt has the new one.
//
// The promise: whatever a client has read in the last Overlap and whatever a server has now verify each other, in both
// directions. It holds as long as Ensure is called at most LeafLife/3 - Overlap later than the time that it returned.
//
// By default the old CA stays until everything that it signed has expired. The reason: KEDA reads its pair when it builds a
// scaler, and keeps the pair for as long as no call fails. When the server closes a connection for its age, KEDA's gRPC reconnects
// with a pair that may be weeks old. In a rotation for age, trusting the CA of a certificate that has not expired costs nothing, and
// spares KEDA a failed handshake. DropAfter is for those who want to drop the old CA earlier. Then a call can fail, as it can for
// connections of KEDA that are older than Overlap and have never read the new CA. KEDA then reads the Secret again and
// repeats the call at once, so the HPA is not affected.
//
// If somebody else knows the CA's key, none of this is fast enough: delete both Secrets. Ensure recreates everything, and KEDA
// repeats one call. If only the Secret with the CA's key is lost, a next CA is published and takes over as above. If it is lost while
// the old CA stays for its certificates, that one is trusted no longer, as with DropAfter.
//
// # Clocks
//
// A certificate that is not valid yet is not replaced: a clock that is behind causes nothing but an error, [ErrClock]. A clock that
// is ahead would treat valid certificates as expired, and make certificates that nobody else accepts yet. So a Keeper with a
// second clock ([KeeperConfig].Time) compares the two before it makes or drops anything, and does neither while they
// differ. Without a second clock, delete both Secrets to get rid of certificates that a clock ahead has made.
//
// # Crashes, and two at work
//
// The Secret of the CA is written first: no certificate is published whose CA's key could be lost. After a crash between the
// two writes, the next Ensure carries out the stored decision, whose times count from then. Both writes are
// conditional on what was read, and the first Secret (the material) is read before the second (the authority). So of two keepers
// neither can undo the other's work (see [Keeper]); one of them reads again.
//
// Why no library: cert-controller of the Open Policy Agent project is for webhooks. It has one certificate and no pair for a
// client, replaces its CA at once without an overlap, keeps the CA's key in the Secret that everybody reads, and depends on
// controller-runtime. client-go's util/cert makes a server's certificate, with RSA keys and a CA whose key is discarded,
// and renews nothing. All certificates here come from crypto/x509.
//
// # What is needed
//
// The keeper needs these permissions: get and update on the two Secrets by name; create on Secrets in their namespaces, which
// cannot be limited to names, unless both Secrets exist (they may be empty); get and patch on the ClusterTriggerAuthentication
// by name, and create. The server needs get, list and watch on the first Secret, by name.
//
// # Errors
//
// A [SecretError] names the Secret or folder, the key and the rule; errors.Is finds [ErrForeign], [ErrDamaged],
// [ErrClock] and [ErrMissing]. Constructors and Next report every wrong field at once, each a scaling.FieldError. No error and no
// printed form of any type here contains a private key.
package certs
