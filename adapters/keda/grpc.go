package keda

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/scaling"
)

// Limits of the gRPC server. A request from KEDA is below 10 KB. KEDA has one connection to each address. In addition to its
// calls it keeps two streams open for each trigger of type external-push.
const (
	callTimeout       = 2 * time.Second
	maxMessage        = 256 << 10
	maxHeaders        = 16 << 10
	streamsPerTrigger = 2
	roomForCalls      = 1000 // per connection, in addition to the streams that stay open
	soon              = callTimeout / 8
	mostArriving      = 1000 // calls and streams that wait for their message longer than soon: at most 250 MiB
	mostConnections   = 1000 // of one client, handshakes included: each takes 17 KiB and more
	connectionTimeout = 10 * time.Second
	connectionAge     = 30 * time.Minute // then the client connects again, with the certificates of that time
	connectionGrace   = time.Minute
	leastPing         = 10 * time.Second
	ping              = 30 * time.Second
)

// GRPCConfig is the configuration of a gRPC server for an Engine. Engine must be set.
type GRPCConfig struct {
	Engine *Engine
	// TLS is the configuration from certs.TLS. Nil serves plaintext, which is only for the loopback interface of a laptop.
	TLS *tls.Config
	// Registerer receives the metrics of calls (grpc_server_handled_total and others); nil means none.
	Registerer prometheus.Registerer
	// Logger receives panics; nil means none.
	Logger *slog.Logger
}

// NewGRPC returns a gRPC server with the scaler and the health service, which reports the scaler's name as SERVING until its
// Shutdown. A request must arrive within 2 s and have at most 256 KiB; the call then has a deadline of 2 s. A panic is
// answered with Internal. Connections are closed after half an hour, so that certificates are checked again. Reflection is
// off. A client's address has at most 1,000 connections, those whose handshake is not over included.
//
// Calls that wait for their messages have 1,000 places, which the clients share by IP address; one client has at most 500. If
// a client has more such calls, each has a quarter of a second for its message.
//
// The server allows two open streams for each trigger that the engine may have; one more is ResourceExhausted. A connection
// has room for a thousand calls in addition: otherwise a client's calls would wait for streams that never end. A stream with
// more than 4 KiB of headers, which stay in memory while it is open, is ResourceExhausted too.
func NewGRPC(c GRPCConfig) (*grpc.Server, *health.Server, error) {
	var e scaling.FieldErrors
	e.Check(c.Engine != nil, "engine", nil, "must be set")
	if err := e.Err(); err != nil {
		return nil, nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	unary := []grpc.UnaryServerInterceptor{}
	stream := []grpc.StreamServerInterceptor{}
	var calls *grpcprometheus.ServerMetrics
	if c.Registerer != nil {
		calls = grpcprometheus.NewServerMetrics(grpcprometheus.WithServerHandlingTimeHistogram(
			grpcprometheus.WithHistogramBuckets([]float64{.00001, .0001, .001, .01, .1, 1}),
		))
		if err := c.Registerer.Register(calls); err != nil {
			return nil, nil, fmt.Errorf("metrics of calls: %w", err)
		}
		unary = append(unary, calls.UnaryServerInterceptor())
		stream = append(stream, calls.StreamServerInterceptor())
	}
	panics := recovery.WithRecoveryHandlerContext(func(ctx context.Context, p any) error {
		c.Logger.ErrorContext(ctx, "call panicked", "panic", p, "stack", string(debug.Stack()))
		return status.Error(codes.Internal, "the scaler failed; its log says more")
	})
	unary = append(unary, recovery.UnaryServerInterceptor(panics), deadline)
	streams := &streamLimit{most: int64(min(c.Engine.c.MaxTriggers, math.MaxInt32/(2*streamsPerTrigger))) * streamsPerTrigger}
	stream = append(stream, recovery.StreamServerInterceptor(panics), streams.intercept)
	options := []grpc.ServerOption{
		grpc.InTapHandle((&arriving{byHost: make(map[string]int)}).tap),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(uint32(streams.most + roomForCalls)), //nolint:gosec // most is at most half of MaxInt32
		grpc.ConnectionTimeout(connectionTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: leastPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: connectionAge, MaxConnectionAgeGrace: connectionGrace, Time: ping, Timeout: leastPing,
		}),
	}
	transport := insecure.NewCredentials()
	if c.TLS != nil {
		transport = credentials.NewTLS(c.TLS)
	}
	options = append(options, grpc.Creds(&connections{TransportCredentials: transport, byHost: make(map[string]int)}))
	server := grpc.NewServer(options...)
	externalscaler.RegisterExternalScalerServer(server, NewServer(c.Engine))
	healthy := health.NewServer()
	healthy.SetServingStatus(externalscaler.ExternalScaler_ServiceDesc.ServiceName, healthgrpc.HealthCheckResponse_SERVING)
	healthgrpc.RegisterHealthServer(server, healthy)
	if calls != nil {
		calls.InitializeMetrics(server)
	}
	return server, healthy, nil
}

// streamHeaders is the size of headers that a stream may have. KEDA sends a few hundred bytes. A stream keeps a map of them, of up to
// three times their size.
const streamHeaders = 4 << 10

// A streamLimit refuses streams beyond the maximum number of open streams.
type streamLimit struct {
	open atomic.Int64
	most int64
}

func (l *streamLimit) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	defer l.open.Add(-1)
	if l.open.Add(1) > l.most {
		return status.Errorf(codes.ResourceExhausted, "there are %d streams, and no more than that are allowed: %d for each trigger that there may be", l.most, streamsPerTrigger)
	}
	if size := headersOf(stream.Context()); size > streamHeaders {
		return status.Errorf(codes.ResourceExhausted, "the headers of the stream have %d bytes, and no more than %d are allowed", size, streamHeaders)
	}
	return handler(srv, received{stream})
}

// headersOf returns the size of what a client sends beside its messages, counted as HTTP/2 does.
func headersOf(ctx context.Context) (size int) {
	headers, _ := metadata.FromIncomingContext(ctx)
	for key, values := range headers {
		for _, value := range values {
			size += len(key) + len(value) + 32
		}
	}
	return size
}

// deadline sets a deadline for each call, because KEDA sets none.
func deadline(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	arrived(ctx)
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return handler(ctx, req)
}

// arriving limits the calls and streams whose message has not arrived. A message may never arrive, or only in part, with up
// to maxMessage bytes in memory, and no other limit applies to a call before its message has arrived.
type arriving struct {
	mu     sync.Mutex
	byHost map[string]int // calls without a message, by the client's host
}

// tap limits how long a call whose headers have arrived may wait for its message: callTimeout, or soon if its client has more
// such calls than its part. Many calls at once, such as KEDA's streams after a restart, are not a problem: their messages
// arrive before soon.
func (a *arriving) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	host := ""
	if p, ok := peer.FromContext(ctx); ok {
		host, _, _ = net.SplitHostPort(p.Addr.String())
	}
	a.mu.Lock()
	a.byHost[host]++
	a.mu.Unlock()
	gone := false
	leave := func(must bool) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		if gone || !must && a.byHost[host] <= mostArriving/max(2, len(a.byHost)) {
			return false
		}
		gone = true
		if a.byHost[host]--; a.byHost[host] == 0 {
			delete(a.byHost, host)
		}
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(callTimeout, cancel) //nolint:forbidigo // like the deadline of a context
	crowded := time.AfterFunc(soon, func() {    //nolint:forbidigo // the same
		if leave(false) {
			cancel()
		}
	})
	done := func() {
		if leave(true) {
			late.Stop()
			crowded.Stop()
		}
	}
	context.AfterFunc(ctx, done)
	return context.WithValue(ctx, arrives{}, done), nil
}

// arrives is the context key of the function to call when a message has arrived.
type arrives struct{}

// arrived reports to tap that the message of a call or stream has arrived.
func arrived(ctx context.Context) {
	if done, ok := ctx.Value(arrives{}).(func()); ok {
		done()
	}
}

// A received stream reports when its message has arrived.
type received struct{ grpc.ServerStream }

func (s received) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		arrived(s.Context())
	}
	return err
}
