// Readings shows what to do with a collector of one's own: three pods are asked, one of them does not answer, and what
// the others said becomes a reading that a policy can decide on without guessing.
//
//	go run ./examples/readings
//
// It starts its pods on 127.0.0.1, and ends by itself.
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

const (
	metric = "queue" // waiting requests a pod
	high   = 10      // above it more pods are wanted: what a pod that gives no value may have, at most
)

// ask returns the number that a pod answers with, or NaN: a pod that gives no value is missing, and not at 0.
func ask(ctx context.Context, url string) float64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return math.NaN()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return math.NaN()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64))
	value, bad := strconv.ParseFloat(string(text), 64)
	if err != nil || bad != nil || resp.StatusCode != http.StatusOK {
		return math.NaN()
	}
	return value
}

// run decides once on what the pods say, with a policy that acts at once.
func run(ctx context.Context, out io.Writer, now time.Time, urls []string) error {
	config := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: metric, High: high, Low: 2})
	config.Up.Window, config.Down.Window = 0, 0
	scaler, err := realtime.New(config)
	if err != nil {
		return err
	}
	control, err := loop.New(scaling.GroupOf(scaling.New(scaler)), loop.Config{Volatile: true})
	if err != nil {
		return err
	}
	values := make([]float64, len(urls))
	for i, url := range urls {
		values[i] = ask(ctx, url)
	}
	reading := scaling.FromPods(metric, values, scaling.Missing{}, high)
	fmt.Fprintf(out, "%v of %d pods: [%.4g, %.4g]\n", reading.Values, len(urls), reading.Lower, reading.Upper)
	control.Read(now, loop.Target{Replicas: int32(len(urls))})
	fmt.Fprint(out, control.Decide(now, scaling.OneTarget(int32(len(urls)), reading)).Explain())
	return nil
}

// pod is a server that answers with a number, or with nothing that is one.
func pod(answer string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
}

func main() {
	cli.Alone("readings asks three pods of its own, of which one may not answer, and decides on what they said. It takes no arguments.")
	for _, answers := range [][]string{{"12", "14", "16"}, {"12", "14", "down"}, {"16", "20", "down"}, {"0", "0", "down"}} {
		var urls []string
		for _, answer := range answers {
			p := pod(answer)
			defer p.Close()
			urls = append(urls, p.URL)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := run(ctx, os.Stdout, time.Now(), urls)
		cancel()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
