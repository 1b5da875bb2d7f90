// Package externalscaler is KEDA's protocol for external scalers: the messages, the client and the server's interface.
//
// The code is generated from externalscaler.proto, which says what each field means to KEDA. KEDA's own stubs would bring the
// whole of its module along. A program may import both: the messages here are registered under KEDA's names in a registry of
// their own, not in protobuf's global one, where KEDA's are.
//
// A server embeds [UnimplementedExternalScalerServer], so that calls of a later KEDA are answered with Unimplemented.
package externalscaler

//go:generate ./generate.sh
