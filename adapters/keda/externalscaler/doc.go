// Package externalscaler is KEDA's protocol for external scalers: the messages, the client and the server's interface.
//
// All code but this is made of externalscaler.proto, which says what each field means to KEDA. It stands here, and is
// not imported from KEDA, as that would bring the whole of KEDA along. A program must not import both: protobuf panics
// at start where two packages register one name.
//
// A server embeds [UnimplementedExternalScalerServer], so that what a later KEDA asks is answered with Unimplemented.
package externalscaler

//go:generate ./generate.sh
