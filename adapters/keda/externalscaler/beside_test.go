package externalscaler_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// An echo answers with the name that it was asked for.
type echo struct {
	externalscaler.UnimplementedExternalScalerServer
}

func (echo) GetMetricSpec(_ context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{MetricName: ref.GetName()}}}, nil
}

// registered registers what KEDA's own stubs register, in the global registries: the file externalscaler.proto and its messages. A
// process can do that once.
var registered = sync.OnceValue(func() error {
	file, err := protodesc.NewFile(protodesc.ToFileDescriptorProto(externalscaler.File_externalscaler_proto), nil)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	for i := 0; err == nil && i < file.Messages().Len(); i++ {
		err = protoregistry.GlobalTypes.RegisterMessage(dynamicpb.NewMessageType(file.Messages().Get(i)))
	}
	return err
})

// TestBesideKEDA: what KEDA's own stubs register panicked at the start of a program that links both. Both are used afterwards, and meet
// on the wire.
func TestBesideKEDA(t *testing.T) {
	require.NoError(t, registered())
	_, err := protoregistry.GlobalFiles.FindFileByPath("externalscaler.proto")
	require.NoError(t, err)

	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	externalscaler.RegisterExternalScalerServer(server, echo{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()

	answer, err := externalscaler.NewExternalScalerClient(conn).GetMetricSpec(t.Context(), &externalscaler.ScaledObjectRef{Name: "chat"})
	require.NoError(t, err)
	require.Equal(t, "chat", answer.GetMetricSpecs()[0].GetMetricName())

	// KEDA's side: its own types, and the same method.
	of := func(name protoreflect.FullName) *dynamicpb.Message {
		m, err := protoregistry.GlobalTypes.FindMessageByName("externalscaler." + name)
		require.NoError(t, err)
		return dynamicpb.NewMessage(m.Descriptor())
	}
	asked, answered := of("ScaledObjectRef"), of("GetMetricSpecResponse")
	asked.Set(asked.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString("chat"))
	require.NoError(t, conn.Invoke(t.Context(), externalscaler.ExternalScaler_GetMetricSpec_FullMethodName, asked, answered))
	theirs, err := proto.Marshal(answered)
	require.NoError(t, err)
	same := new(externalscaler.GetMetricSpecResponse)
	require.NoError(t, proto.Unmarshal(theirs, same))
	require.True(t, proto.Equal(answer, same))
}
