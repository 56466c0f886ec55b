package engine

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// CommRes is the option LocalCommRes, version 1.3.
type CommRes struct {
	NetInstanceID string
	// Endpoints has 1 to 64 entries, of which one at least has protocol roce and
	// placement host.
	Endpoints []Endpoint
}

// Endpoint is one end of links. CommID is an IP address if Protocol is roce or uboe, else an
// endpoint id.
type Endpoint struct {
	Protocol, CommID, Placement, Plane, DstEID, ServerID string
}

// usable reports whether this package can use it.
func (e *Endpoint) usable() bool { return e.Protocol == "roce" && e.Placement == "host" }

const (
	maxEndpoints = 64
	maxText      = 1024
)

// parseCommRes reads the option.
func parseCommRes(text []byte) (*CommRes, error) {
	bad := func(format string, args ...any) (*CommRes, error) {
		return nil, invalid("option %s: %w", OptionLocalCommRes, fmt.Errorf(format, args...))
	}
	v, err := decodeJSON(text)
	if err != nil {
		return bad("%w", err)
	}
	all, ok := v.(map[string]any)
	if !ok {
		return bad("it is no JSON object")
	}
	switch version, _ := all["version"].(string); version {
	case "1.3":
	case "1.0", "1.2":
		return nil, unsupported("option %s: version %s is a rank table, this package reads version 1.3", OptionLocalCommRes, version)
	default:
		return bad("version %q, allowed: 1.3", clip(textOf(all["version"])))
	}
	res := &CommRes{}
	var version string
	var endpoints []any
	if err := fill(all, map[string]func(any) error{
		"version": textKey(&version, 16), "net_instance_id": textKey(&res.NetInstanceID, maxText),
		"endpoint_list": func(v any) error {
			if endpoints, ok = v.([]any); !ok || len(endpoints) == 0 || len(endpoints) > maxEndpoints {
				return fmt.Errorf("%s with %d entries, allowed: a list of 1 to %d", textOf(v), len(endpoints), maxEndpoints)
			}
			return nil
		},
	}); err != nil {
		return bad("%w", err)
	}
	if endpoints == nil {
		return bad("endpoint_list is missing")
	}
	for i, v := range endpoints {
		var e Endpoint
		if err := e.parse(v); err != nil {
			return bad("endpoint %d: %w", i, err)
		}
		res.Endpoints = append(res.Endpoints, e)
	}
	if !slices.ContainsFunc(res.Endpoints, func(e Endpoint) bool { return e.usable() }) {
		return nil, unsupported("option %s: no endpoint has protocol roce and placement host", OptionLocalCommRes)
	}
	return res, nil
}

// parse reads an endpoint.
func (e *Endpoint) parse(v any) error {
	all, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s instead of an object", textOf(v))
	}
	if err := fill(all, map[string]func(any) error{
		"protocol":  oneOf(&e.Protocol, "roce", "ub_ctp", "uboe", "ub_rtp", "hccs"),
		"placement": oneOf(&e.Placement, "host", "device"),
		"comm_id":   textKey(&e.CommID, maxText), "plane": textKey(&e.Plane, maxText),
		"dst_eid": textKey(&e.DstEID, maxText), "server_id": textKey(&e.ServerID, maxText),
	}); err != nil {
		return err
	}
	switch "" {
	case e.Protocol:
		return fmt.Errorf("protocol is missing")
	case e.Placement:
		return fmt.Errorf("placement is missing")
	case e.CommID:
		return fmt.Errorf("comm_id is missing")
	}
	if e.Protocol == "roce" {
		if _, err := netip.ParseAddr(e.CommID); err != nil {
			return fmt.Errorf("comm_id %q, allowed for roce: an IP address", clip(e.CommID))
		}
	}
	return nil
}

// fill reads all keys of an object, and knows no others.
func fill(all map[string]any, setters map[string]func(any) error) error {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		set := setters[key]
		if set == nil {
			return fmt.Errorf("key %q, known: %s", clip(key), strings.Join(slices.Sorted(maps.Keys(setters)), ", "))
		}
		if err := set(all[key]); err != nil {
			return fmt.Errorf("%s is %w", key, err)
		}
	}
	return nil
}

func oneOf(p *string, values ...string) func(any) error {
	return func(v any) error {
		s, ok := v.(string)
		if !ok || !slices.Contains(values, s) {
			return fmt.Errorf("%q, allowed: %s", clip(textOf(v)), strings.Join(values, ", "))
		}
		*p = s
		return nil
	}
}
