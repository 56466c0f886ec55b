package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed reads all of an XML document and returns its text.
func wellFormed(t *testing.T, doc string) string {
	t.Helper()
	var text strings.Builder
	for d := xml.NewDecoder(strings.NewReader(doc)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		require.NoError(t, err)
		if c, ok := tok.(xml.CharData); ok {
			text.Write(c)
		}
	}
}

func TestPlotShowsEveryContender(t *testing.T) {
	r := goldenReport()
	for _, b := range AllBaselines() {
		r.Baselines = append(r.Baselines, BaselineResult{Name: b, Size: 4096, GBPerS: 1, LatencyUS: &Latency{P50: 20}})
	}
	var b bytes.Buffer
	require.NoError(t, r.WritePlot(&b))
	text := wellFormed(t, b.String())
	for _, name := range append(AllBaselines(), "hixl write", "hixl cas") {
		require.Equal(t, 2, len(regexp.MustCompile(regexp.QuoteMeta(">"+name.label()+"</text>")).FindAllString(b.String(), -1)), "%s in both charts", name)
		require.Contains(t, text, name.label()+" ", "its points")
	}
	for _, s := range []string{"64", "1MiB", "GB/s", "us", "Bandwidth", "Latency", "prefers-color-scheme: dark"} {
		require.Contains(t, text, s)
	}
	// Nothing is fetched: names of XML are the only addresses.
	for _, u := range regexp.MustCompile(`\w+://[^" ]*`).FindAllString(b.String(), -1) {
		require.Contains(t, []string{"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}, u)
	}
	require.NotRegexp(t, `(?i)<script|<link|<img|url\(|@import`, b.String())
	require.NotRegexp(t, `NaN|Inf`, b.String())
	// The scale is written in powers of ten.
	for _, tick := range regexp.MustCompile(`text-anchor="end">([^<]*)</text>`).FindAllStringSubmatch(b.String(), -1) {
		require.Regexp(t, `^(10*|0\.0*1|GB/s|us)$`, tick[1])
	}
}

func TestPlotOfLittle(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, newReport(Config{}.withDefaults()).WritePlot(&b))
	wellFormed(t, b.String())

	r := newReport(Config{}.withDefaults())
	r.Results = []Result{{Size: 64, GBPerS: 1, LatencyUS: Latency{P50: 2}}}
	r.Config.Mode, r.Interrupted = `<&">`, true
	b.Reset()
	require.NoError(t, r.WritePlot(&b))
	require.Contains(t, wellFormed(t, b.String()), `<&">`)
	require.NotContains(t, b.String(), "NaN")
	require.Contains(t, b.String(), "Interrupted: ")
}

func TestAxisIsLogarithmic(t *testing.T) {
	a := axis{lo: 1, hi: 100, from: 0, to: 200}
	require.InDelta(t, 100, a.at(10), 1e-9)
	require.InDelta(t, 200, a.at(100), 1e-9)
}
