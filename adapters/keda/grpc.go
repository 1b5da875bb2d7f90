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
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/scaling"
)

// Limits of the gRPC server. A request of KEDA's is below 10 KB. KEDA has one connection to each address, with two streams
// for each trigger of type external-push that stay open, beside its calls.
const (
	callTimeout       = 2 * time.Second
	maxMessage        = 256 << 10
	maxHeaders        = 16 << 10
	streamsPerTrigger = 2
	roomForCalls      = 1000 // of a connection, beside the streams that stay open
	soon              = callTimeout / 8
	mostArriving      = 1000 // calls and streams whose message has not come soon: at most 250 MiB
	connectionTimeout = 10 * time.Second
	connectionAge     = 30 * time.Minute // then it is opened anew, with the certificates of that time
	connectionGrace   = time.Minute
	leastPing         = 10 * time.Second
	ping              = 30 * time.Second
)

// GRPCConfig says how an Engine is served. Engine must be set.
type GRPCConfig struct {
	Engine *Engine
	// TLS is the configuration of certs.TLS. Nil serves plaintext, which is for the loopback of a laptop only.
	TLS *tls.Config
	// Registerer gets the numbers of calls (grpc_server_handled_total and others); nil means none.
	Registerer prometheus.Registerer
	// Logger gets panics; nil means none.
	Logger *slog.Logger
}

// NewGRPC returns a gRPC server with the scaler and the health service; that of the scaler's name is SERVING until its
// Shutdown. Requests have 2 s to come and a limit of 256 KiB, calls then a deadline of 2 s; what panics is answered with
// Internal; connections are closed after half an hour, so that whom to trust is asked again. Reflection is off.
//
// Clients whose calls wait for their messages share 1,000 places by IP address, of which one has 500 at most; where it has
// more, each of its calls has a quarter of a second.
//
// Two streams for each trigger that the engine may have can be open at once; one more is ResourceExhausted. A connection
// has room for a thousand calls beside them: without, a client's calls would wait for streams that never end.
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
	if c.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
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

// A streamLimit ends streams beyond the most that may be open.
type streamLimit struct {
	open atomic.Int64
	most int64
}

func (l *streamLimit) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	defer l.open.Add(-1)
	if l.open.Add(1) > l.most {
		return status.Errorf(codes.ResourceExhausted, "there are %d streams, and no more than that are allowed: %d for each trigger that there may be", l.most, streamsPerTrigger)
	}
	return handler(srv, received{stream})
}

// deadline bounds a call: KEDA sets no deadline.
func deadline(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	arrived(ctx)
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return handler(ctx, req)
}

// arriving bounds the calls and streams whose message has not come: it may never come, and may be half there, of up to
// maxMessage bytes. Nothing else looks at a call before its message has come.
type arriving struct {
	mu     sync.Mutex
	byHost map[string]int // of clients
}

// tap gives a call whose headers have come its time: that of a call, or soon where its client has more of them than its part.
// Many that come at once, as KEDA's streams after a restart, are no fault: their messages are there soon.
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
	late := time.AfterFunc(callTimeout, cancel) //nolint:forbidigo // as the deadline of a context
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

// arrives is the key of what is to be called when a message has arrived.
type arrives struct{}

// arrived says that the message of a call or stream has come.
func arrived(ctx context.Context) {
	if done, ok := ctx.Value(arrives{}).(func()); ok {
		done()
	}
}

// A received stream says when its message has come.
type received struct{ grpc.ServerStream }

func (s received) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		arrived(s.Context())
	}
	return err
}
