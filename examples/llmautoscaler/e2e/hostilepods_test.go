package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// hostileVariable makes this program the hostile pods: it has the number of pods of each kind.
const hostileVariable = "INFERSCALE_HOSTILE_PODS"

// hostileAddress is the first address of hostile pods; those of a kind follow each other.
const hostileAddress = 1 << 18

const (
	family = "vllm:num_requests_waiting"
	typed  = "# TYPE " + family + " gauge\n"
	head   = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
)

// A hostileKind is what a pod does with a connection, or with a request.
type hostileKind struct {
	name    string
	https   bool // the object asks for https
	connect func(net.Conn)
	handle  http.HandlerFunc
}

// hostileKinds are those of the tests of package scrape and kedascaler.
func hostileKinds() []hostileKind {
	comment := bytes.Repeat([]byte("other_metric{pod=\"x\",model_name=\"a long name of a model\"} 1\n"), 1<<10)
	series := bytes.Repeat([]byte("a 1\n"), 1<<14)
	letters := bytes.Repeat([]byte("a"), 1<<16)
	types := bytes.Repeat([]byte(typed), 1<<11)
	zeros := zipped(strings.Repeat("# 0000000000000\n", 1<<20)) // 16 MiB
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	endless := func(chunk []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = endlessly(w, chunk) }
	}
	labelled := func(format string) http.HandlerFunc { // 16 MiB of series that differ, and that no page had before
		return func(w http.ResponseWriter, _ *http.Request) {
			first := rand.Int64N(1 << 40)
			var chunk []byte
			for i := int64(0); ; {
				for chunk = chunk[:0]; len(chunk) < 1<<15; i++ {
					chunk = fmt.Appendf(chunk, format, first+i)
				}
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	start := time.Now()
	return []hostileKind{
		{name: "hangs", connect: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }},
		{name: "headers, and then nothing", connect: raw(head+"Content-Length: 100\r\n\r\n", true)},
		{name: "slow drip", handle: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "#")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(50 * time.Millisecond)
			}
		}},
		{name: "endless body", handle: endless(comment)},
		{name: "endless line", handle: endless(letters)},
		{name: "endless types", handle: endless(types)},
		{name: "full, and then hangs", handle: func(w http.ResponseWriter, r *http.Request) {
			for range 15 << 20 / len(comment) {
				if _, err := w.Write(comment); err != nil {
					return
				}
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		{name: "four bytes a series", handle: endless(series)},
		{name: "many series", handle: labelled(family + "{engine=\"%d\"} 1\n")},
		{name: "many series of another family", handle: labelled("a{x=\"%d\"} 1\n")},
		{name: "many buckets", handle: labelled("vllm:time_to_first_token_seconds_bucket{le=\"%d\"} 1\n")},
		{name: "as many counters as are remembered, always others", handle: func(w http.ResponseWriter, _ *http.Request) {
			first := rand.Int64N(1 << 40)
			for i := range int64(2000) {
				fmt.Fprintf(w, "vllm:time_to_first_token_seconds_bucket{engine=\"%[1]d\",le=\"1\"} 1\nvllm:time_to_first_token_seconds_bucket{engine=\"%[1]d\",le=\"+Inf\"} 1\nvllm:time_to_first_token_seconds_count{engine=\"%[1]d\"} 1\n", first+i)
			}
		}},
		{name: "gzip bomb", handle: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_ = endlessly(w, zeros)
		}},
		{name: "header of a megabyte", connect: raw("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20), false)},
		{name: "endless headers", connect: func(c net.Conn) {
			if readRequest(c) == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				_ = endlessly(c, bytes.Repeat([]byte("X: x\r\n"), 1<<10))
			}
		}},
		{name: "redirects in a circle", handle: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/metrics?again", http.StatusTemporaryRedirect)
		}},
		{name: "redirects away", handle: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}},
		{name: "closes the connection", connect: func(net.Conn) {}},
		{name: "cut", connect: raw(head+"Content-Length: 1000\r\n\r\n"+typed+family+" 5", false)},
		{name: "plain text for https", https: true, connect: raw(head+"\r\n"+typed, false)},
		{name: "hangs in the handshake", https: true, connect: func(c net.Conn) {
			_ = tls.Server(slow{c}, &tls.Config{MinVersion: tls.VersionTLS13}).Handshake()
		}},
		{name: "no number", handle: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "%s%s %s\n", typed, family, []string{"NaN", "+Inf", "-Inf", "-5", "1e300", "9e999", "many"}[rand.IntN(7)])
		}},
		{name: "bytes that no line has", handle: func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "%s%s%s 120\n", typed, []string{"\ufeff", "\x00", "\v", "\u00a0"}[rand.IntN(4)], family)
		}},
		{name: "sums and families twice", handle: text(typed + family + " 1\n" + typed + family + " 1\n" +
			"vllm:time_to_first_token_seconds_sum 5\nvllm:time_to_first_token_seconds_sum 899\nvllm:time_to_first_token_seconds_count 1\n")},
		{name: "counters that fall, and engines that are away", handle: func(w http.ResponseWriter, _ *http.Request) {
			for engine := range 1 + rand.IntN(2) {
				n := int(time.Since(start).Seconds()) % 60
				fmt.Fprintf(w, "%[3]s{engine=\"%[1]d\"} 5\nvllm:time_to_first_token_seconds_bucket{engine=\"%[1]d\",le=\"+Inf\"} %[2]d\n"+
					"vllm:time_to_first_token_seconds_sum{engine=\"%[1]d\"} %[2]d\nvllm:time_to_first_token_seconds_count{engine=\"%[1]d\"} %[2]d\n", engine, n, family)
			}
		}},
	}
}

// A slow connection hands over a byte a second.
type slow struct{ net.Conn }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Conn.Read(p[:min(1, len(p))])
}

func (s slow) Write(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Conn.Write(p)
}

// raw answers a request by some bytes, and closes the connection or leaves it to the other side.
func raw(answer string, stays bool) func(net.Conn) {
	return func(c net.Conn) {
		if readRequest(c) != nil {
			return
		}
		_, _ = io.WriteString(c, answer)
		if stays {
			_, _ = io.Copy(io.Discard, c)
		}
	}
}

func endlessly(w io.Writer, chunk []byte) error {
	for {
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.Bytes()
}

// hostilePods are all of them, in a process of their own until its standard input ends. Elsewhere they would be on other
// machines: it runs at the lowest priority.
func hostilePods() error {
	each, err := strconv.Atoi(os.Getenv(hostileVariable))
	if err != nil {
		return err
	}
	for i, kind := range hostileKinds() {
		server := &http.Server{ //nolint:gosec // it is the client that is hostile, else
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain; version=0.0.4")
				kind.handle(w, r)
			}),
			ErrorLog: log.New(io.Discard, "", 0),
		}
		for _, address := range addresses(hostileAddress+i*each, each) {
			listener, err := net.Listen("tcp4", net.JoinHostPort(address, strconv.Itoa(port)))
			if err != nil {
				return err
			}
			if kind.connect != nil {
				go accept(listener, kind.connect)
			} else {
				go func() { _ = server.Serve(listener) }()
			}
		}
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
