package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// WriteJSON writes the report as one indented object and a newline.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// csvHeader names the columns of WriteCSV; ratios follow, one column a baseline.
var csvHeader = []string{
	"op", "size", "qps", "depth", "mtu", "gb_per_s", "msgs_per_s", "lat_p50_us", "lat_p99_us", "lat_p999_us",
	"cpu_s_per_gb", "retransmits", "verified", "rnr_naks", "seq_naks", "timeouts", "rx_overflow",
}

// WriteCSV writes a line a result, then a line a baseline with the columns that
// it has, under one header.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := csvHeader
	for _, b := range r.Config.Baselines {
		head = append(head[:len(head):len(head)], "vs_"+string(b))
	}
	rows := [][]string{head}
	for i := range r.Results {
		rows = append(rows, r.csvResult(&r.Results[i]))
	}
	for _, b := range r.Baselines {
		row := make([]string, len(head))
		row[0], row[1], row[5], row[10] = string(b.Name), strconv.Itoa(b.Size), decimal(b.GBPerS), decimal(b.CPUPerGB)
		rows = append(rows, row)
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("bench: writing CSV: %w", err)
	}
	return nil
}

func (r *Report) csvResult(x *Result) []string {
	row := []string{
		x.Op.String(), strconv.Itoa(x.Size), strconv.Itoa(x.QPs), strconv.Itoa(x.Depth), strconv.Itoa(x.MTU),
		decimal(x.GBPerS), decimal(x.MsgsPerS),
		decimal(x.LatencyUS.P50), decimal(x.LatencyUS.P99), decimal(x.LatencyUS.P999),
		decimal(x.CPUPerGB), whole(x.Retransmits), strconv.FormatBool(x.Verified),
		whole(x.RNRNAKs), whole(x.SeqNAKs), whole(x.Timeouts), whole(x.RxOverflow),
	}
	for _, b := range r.Config.Baselines {
		v := ""
		if q := r.ratio(x, b); q != nil {
			v = decimal(q.Median)
		}
		row = append(row, v)
	}
	return row
}

// ratio finds the ratio of a result, nil if it was not compared.
func (r *Report) ratio(x *Result, against Baseline) *Ratio {
	for i := range r.Ratios {
		q := &r.Ratios[i]
		if q.Op == x.Op && q.Size == x.Size && q.Against == against &&
			(q.QPs == 0 || q.QPs == x.QPs) && (q.Depth == 0 || q.Depth == x.Depth) && (q.MTU == 0 || q.MTU == x.MTU) {
			return q
		}
	}
	return nil
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func whole(v uint64) string { return strconv.FormatUint(v, 10) }
