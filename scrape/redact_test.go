package scrape

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRedact(t *testing.T) {
	require.Equal(t, "a [redacted] b", string(redact([]byte("a "+secret+" b"), 64, secret)))
	require.Equal(t, "xx[redacted]", string(redact([]byte("xx"+secret), 3, secret)), "the cut cannot leave a part")
	require.Equal(t, "[redacted]", string(redact([]byte("abc"), 64, "abc")), "a short token")
	require.Equal(t, "[redacted]", string(redact([]byte("~"), 64, "~")), "a token of one byte")
	require.Equal(t, "[redacted]", string(redact([]byte(secret[3:20]), 64, secret)), "a part at the end")
	require.Equal(t, "[redacted]!", string(redact([]byte(secret[:8]+"!"), 64, secret)), "eight bytes in a row are a part")
	require.Equal(t, secret[:7]+"!", string(redact([]byte(secret[:7]+"!"), 64, secret)))
	require.Equal(t, "text", string(redact([]byte("text"), 64)))
	require.Equal(t, "tex", string(redact([]byte("text"), 3)))
}

// TestRedactLeavesNothing: of a token in a form that an answer may have, no byte is shown.
func TestRedactLeavesNothing(t *testing.T) {
	for _, token := range []string{secret, `q"w<e>r&t'y\u/i+o=p%41~`} {
		inJSON, err := json.Marshal(token)
		require.NoError(t, err)
		percent := regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(token)), "%$0")
		for _, form := range []string{
			token, string(inJSON[1 : len(inJSON)-1]), html.EscapeString(token), url.PathEscape(token), url.QueryEscape(token),
			strings.ToLower(url.QueryEscape(token)), hex.EncodeToString([]byte(token)), strings.ToUpper(hex.EncodeToString([]byte(token))),
			percent, strings.ToUpper(percent), base64.RawStdEncoding.EncodeToString([]byte(token)), base64.RawURLEncoding.EncodeToString([]byte(token)),
		} {
			reverse := []byte(form)
			slices.Reverse(reverse)
			for _, sent := range []string{form, string(reverse)} {
				for range 4 { // as it is, and quoted up to three times
					require.Equal(t, "[redacted]", string(redact([]byte(sent), 64, token)), sent)
					sent = strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(sent), `"`), `"`)
				}
			}
		}
	}
}

// TestRedactOfWhatIsWithinBase64: of base64 that has more than the token, what depends on the token alone is not shown.
func TestRedactOfWhatIsWithinBase64(t *testing.T) {
	for before, shown := range map[string]int{"a": 2, "ab": 3} {
		token := "0123456789-token-of-27-bytes"[:29-len(before)-1]
		whole := base64.StdEncoding.EncodeToString([]byte(before + token))
		for strings.HasSuffix(whole, "=") {
			token = token[:len(token)-1]
			whole = base64.StdEncoding.EncodeToString([]byte(before + token))
		}
		require.Equal(t, whole[:shown]+"[redacted]", string(redact([]byte(whole), 64, token)))
	}
}

// TestTokensInDisguise: a pod that sends the token back in another form finds it in no message, of a page nor of an error
// page.
func TestTokensInDisguise(t *testing.T) {
	reverse := func(s string) string { b := []byte(s); slices.Reverse(b); return string(b) }
	disguises := map[string]func(string) string{
		"as it is": func(s string) string { return s }, "backwards": reverse, "quoted": strconv.Quote,
		"quoted twice":         func(s string) string { return strconv.Quote(strconv.Quote(s)) },
		"base64":               func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of the header": func(s string) string { return base64.URLEncoding.EncodeToString([]byte("Bearer " + s)) },
		"base64 with a colon":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("ab" + s + ":x")) },
		"base64 backwards":     func(s string) string { return reverse(base64.StdEncoding.EncodeToString([]byte(s))) },
		"hexadecimal":          func(s string) string { return hex.EncodeToString([]byte(s)) },
		"a query":              url.QueryEscape, "a path": url.PathEscape, "HTML": html.EscapeString,
		"percent": func(s string) string {
			return strings.ToUpper(regexp.MustCompile("..").ReplaceAllString(hex.EncodeToString([]byte(s)), "%$0"))
		},
	}
	for _, token := range []string{secret, `a"b"c"d"e"f"g"h"i"j"k`, `q\w\e\r\t\y\u\i\o\p`, `<&">/+=%41%42\"'.~abcdef`, "short1"} {
		for name, disguise := range disguises {
			sent := disguise(token)
			for _, body := range []struct{ contentType, text string }{
				{"text/html", "<p>" + sent + "</p>"},
				{"x/" + sent, ""},
				{textVersion, "vllm:num_requests_waiting " + sent + "\n"},
				{textVersion, "vllm:num_requests_waiting{a=" + strconv.Quote(sent) + "} 1\nvllm:num_requests_waiting{a=" + strconv.Quote(sent) + "} 1\n"},
			} {
				base := serve(t, answer(body.contentType, body.text))
				s := newScraper(t, Config{Token: token, AllowTokenOverHTTP: true})
				sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
				require.NotNil(t, sweep.Pods[0].Values[0].Err)
				said := sweep.Pods[0].Values[0].Err.Error()
				for _, shown := range []string{sent, strings.Trim(strconv.Quote(sent), `"`)} {
					for k := range len(shown) - 2*telling {
						require.NotContains(t, said, shown[k:k+2*telling], "%s of %s in %s", name, token, body.text)
					}
				}
			}
		}
	}
}

// tokensOfTrouble are as long as a token may be, and of what repeats itself or grows when it is encoded and quoted.
func tokensOfTrouble() map[string]string {
	return map[string]string{
		"of one letter": strings.Repeat("a", maxToken), "of backslashes": strings.Repeat(`\`, maxToken), "of quotes": strings.Repeat(`"`, maxToken),
		"of all kinds": strings.Repeat(`a"\<&`, maxToken/5), "of 4 KiB": strings.Repeat(`a"\<&`, 4<<10/5), "of backslashes, of 4 KiB": strings.Repeat(`\`, 4<<10-1),
	}
}

// TestALongTokenTakesLittleTime: a pod that repeats the token of whoever runs it, with and without encoding, keeps no
// processor. It took 24 s for one page, whatever the timeout.
func TestALongTokenTakesLittleTime(t *testing.T) {
	for name, token := range tokensOfTrouble() {
		for _, body := range []string{strings.Repeat(token, 4), strings.Repeat(hex.EncodeToString([]byte(token)), 4), strings.Repeat("\\u003c", 16<<10)} {
			base := serve(t, answer("text/html", body))
			s := newScraper(t, Config{Token: token, AllowTokenOverHTTP: true})
			began := time.Now()
			sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
			require.Less(t, time.Since(began), 2*time.Second, "a token %s", name)
			require.Equal(t, ContentType, sweep.Pods[0].Values[0].Err.Reason)
			require.NotContains(t, sweep.Pods[0].Values[0].Err.Error(), token[:2*telling])
		}
	}
}

// TestALongTokenTakesLittleMemory: no budget counts what a scraper keeps of a token. It was 3 MB for one of 16 KiB.
func TestALongTokenTakesLittleMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var all []*Scraper
	for range 20 {
		for _, token := range tokensOfTrouble() {
			all = append(all, newScraper(t, Config{Token: token, AllowTokenOverHTTP: true}))
		}
	}
	require.Less(t, (heap()-before)/int64(len(all)), int64(100<<10))
	runtime.KeepAlive(all)
}

// TestNothingIsShownBesideALongToken: what it takes to find a part of one is worth no error's text.
func TestNothingIsShownBesideALongToken(t *testing.T) {
	for _, row := range []struct {
		length int
		says   string
	}{{longToken - 1, `"x" is not text/plain`}, {longToken, redacted}} {
		base := serve(t, answer("x", "page"))
		s := newScraper(t, Config{Token: strings.Repeat("t", row.length), AllowTokenOverHTTP: true})
		sweep := s.Scrape(t.Context(), []Pod{{Name: "p", URL: base + "/metrics"}})
		require.ErrorContains(t, sweep.Pods[0].Values[0].Err, row.says)
	}
}

// TestErrorsAreShort: an error shows 64 bytes of an answer, and has at most 300 bytes that a pod may have chosen.
func TestErrorsAreShort(t *testing.T) {
	f := &fetcher{}
	require.Equal(t, strconv.Quote(strings.Repeat("x", 64)), f.excerpt(bytes.Repeat([]byte("x"), 1000)))
	long := f.clean(failf(Parse, "%s", strings.Repeat("x", 1000)))
	require.Equal(t, "Parse: "+strings.Repeat("x", 300), long.Error())
}
