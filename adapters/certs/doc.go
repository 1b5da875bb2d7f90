// Package certs has the certificates between KEDA and the external scaler: it makes them, renews them, rotates the CA
// without a failed call, and serves with them.
//
// # The story
//
// A [Keeper], run by the leader, keeps two Secrets. One is read by KEDA and by the server, of type kubernetes.io/tls:
//
//	ca.crt                   every trusted CA
//	tls.crt, tls.key         KEDA's pair, for clients only
//	server.crt, server.key   the server's pair, for servers only
//
// The other has what KEDA must not read, the CA's private key, and what the rotation remembers: tls.crt and tls.key, the
// CA that signs; next.crt and next.key, the one that will; old.crt, the one that did; state, a JSON. Keys are ECDSA on
// P-256, serial numbers are random. A leaf is made anew when a third of its life is left ([Rules] has the lifetimes), or
// when its names are not those of the rules.
//
// A [Reader] gives a server its TLS configuration: certificate and CAs are read at every handshake, from a [SecretSource]
// (the cache of an informer) or from [Files]. [KeepAuthentication] keeps the ClusterTriggerAuthentication by which KEDA
// finds its pair.
//
// All decisions are those of [Next], a function of state and time.
//
// # The rotation
//
// A CA is replaced when a third of its life is left, or when asked ([RotateAnnotation], [Keeper.RotateCA]). Times count
// from when a phase can be read in the first Secret, not from when it was decided on.
//
//	Publish   A next CA is made. ca.crt has both, all leaves are still of the old one.
//	          Ends after Overlap: now all that was read has both.
//	Switch    Both leaves are made anew by the next CA, the old CA's key is gone. ca.crt has both.
//	          Ends when what the old one signed has expired, or after DropAfter.
//	Steady    ca.crt has the new one.
//
// The promise: whatever a client has read in the last Overlap and whatever a server has now verify each other, in both
// directions. It holds as long as Ensure is called no later than LeafLife/3 - Overlap after what it said.
//
// Why the old CA stays, by default, until what it signed has expired: KEDA reads its pair when it builds a scaler, and
// keeps it for as long as no call fails. When the server closes a connection for its age, KEDA's gRPC reconnects with the
// pair of weeks ago. To trust the CA of a certificate that is not expired costs nothing in a rotation for age, and
// spares KEDA a failed handshake. DropAfter is for those who want to be rid of the CA earlier. Then, as for KEDA's
// connections that are older than Overlap and have never read the new CA, a call fails, KEDA reads the Secret again and
// repeats the call at once: what the HPA sees is not affected.
//
// If the CA's key is known to somebody, none of this is fast enough: delete both Secrets. Ensure makes all anew, and KEDA
// repeats one call. If the Secret with the CA's key alone is lost, a next CA is published and takes over as above.
//
// # Clocks
//
// What is not valid yet is not replaced: a clock that is behind causes nothing but an error, [ErrClock]. A clock that is
// ahead would take for expired what is not, and make what nobody else takes for valid yet. So a Keeper that is given
// another clock ([KeeperConfig].Time) compares the two before it makes or drops anything, and does neither where they
// differ. Without one, certificates that a clock ahead has made are to be deleted, with both Secrets.
//
// # Crashes, and two at work
//
// The Secret of the CA is written first: no certificate is published whose CA's key could be lost. A crash between the
// two writes leaves a decision that is carried out by the next Ensure, from when on its times count. Both writes are
// conditional on what was read, and the material is read before the authority: two keepers cannot take each other's work
// back (see [Keeper]), one of them reads again.
//
// Why no library: cert-controller of the open policy agent is for webhooks; it has one certificate and no pair for a
// client, replaces its CA at once without an overlap, keeps the CA's key in the Secret that all read, and brings
// controller-runtime. client-go's util/cert makes a server's certificate, with RSA keys and a CA whose key is thrown
// away, and renews nothing. All certificates here come from crypto/x509.
//
// # What is needed
//
// Permissions of the keeper: get and update on the two Secrets by name; create on Secrets in their namespaces, which
// cannot be limited to names, unless both exist (they may be empty); get and patch on the ClusterTriggerAuthentication
// by name, and create. Of the server: get, list and watch on the first Secret, by name.
//
// # Errors
//
// A [SecretError] names the Secret or folder, the key and the rule; errors.Is finds [ErrForeign], [ErrDamaged],
// [ErrClock] and [ErrMissing]. Constructors and Next report every wrong field at once, each a scaling.FieldError. No error and no
// printed form of any type here has a private key in it.
package certs
