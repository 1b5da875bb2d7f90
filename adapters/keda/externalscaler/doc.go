// Package externalscaler is KEDA's protocol for external scalers: the messages, the client and the server's interface.
//
// All code but this is made of externalscaler.proto, which says what each field means to KEDA. It stands here, and is
// not imported from KEDA, as that would bring the whole of KEDA along. A program may import both: the messages here are
// registered under KEDA's names in a registry of their own, not in protobuf's global one, where KEDA's are.
//
// A server embeds [UnimplementedExternalScalerServer], so that what a later KEDA asks is answered with Unimplemented.
package externalscaler

//go:generate ./generate.sh
