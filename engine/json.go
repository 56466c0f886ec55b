package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of JSON: how deep it may nest, and how many values it may have.
const (
	maxDepth  = 8
	maxValues = 1 << 16
)

// decodeJSON reads one value of JSON into maps, lists, json.Numbers, strings and bools. Unlike
// package json it refuses a key that comes twice, and what is deep or large.
func decodeJSON(b []byte) (any, error) {
	if len(b) > MaxOption {
		return nil, fmt.Errorf("%d bytes, allowed: up to %d", len(b), MaxOption)
	}
	d := &decoder{json.NewDecoder(bytes.NewReader(b)), 0}
	d.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("byte %d: more after the end", d.InputOffset())
	}
	return v, nil
}

type decoder struct {
	*json.Decoder
	values int
}

func (d *decoder) value(depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if d.values++; d.values > maxValues {
		return nil, fmt.Errorf("more than %d values", maxValues)
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth++; depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	if delim == '[' {
		return d.list(depth)
	}
	return d.object(depth)
}

func (d *decoder) list(depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func (d *decoder) object(depth int) (any, error) {
	all := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("%v instead of a key", t)
		}
		if _, twice := all[key]; twice {
			return nil, fmt.Errorf("key %q comes twice", clip(key))
		}
		if all[key], err = d.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return all, err
}
