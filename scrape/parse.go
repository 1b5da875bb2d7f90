package scrape

import (
	"bytes"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A pageReader turns pages into families: the filter first, expfmt for what is left. It belongs to one goroutine and
// is used again for page after page.
type pageReader struct {
	parser expfmt.TextParser
	source bytes.Reader
}

func newPageReader() *pageReader {
	// The zero TextParser panics. UTF8Validation accepts every name that Prometheus 3 does.
	return &pageReader{parser: expfmt.NewTextParser(model.UTF8Validation)}
}

// read returns the wanted families of a page. There is no partial answer: what expfmt returns beside an error can hold
// a metric without a value, which its getters would read as 0.
func (r *pageReader) read(f *filter, page []byte) (families map[string]*dto.MetricFamily, failure *Error) {
	kept := f.keep(page)
	if f.damage != nil {
		return nil, failf(Parse, "a line in braces or quotes whose name cannot be told: %.64q", f.damage)
	}
	defer func() {
		// No input is known that makes expfmt panic behind the filter, but some do before it, and a page must not be
		// able to bring down a scaler.
		if p := recover(); p != nil {
			r.parser = expfmt.NewTextParser(model.UTF8Validation)
			families, failure = nil, failf(Parse, "the parser gave up: %.64q", fmt.Sprint(p))
		}
	}()
	r.source.Reset(kept)
	families, err := r.parser.TextToMetricFamilies(&r.source)
	if err != nil {
		// The message repeats the page; %.200q cuts and quotes it.
		return nil, failf(Parse, "%.200q", err.Error())
	}
	return families, nil
}
