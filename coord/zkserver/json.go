package zkserver

import (
	"encoding/json"
	"fmt"
)

// object is a JSON object whose fields keep their order.
type object []field

// appendJSON adds v as the real server's library prints it, down to the spaces, which scripts that look for
// '"error" : null' depend on. v is made of objects, slices of objects, of strings and of numbers, and plain values.
func appendJSON(b []byte, v any, indent string) []byte {
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			return append(b, "{ }"...)
		}
		b = append(b, "{\n"...)
		for i, f := range v {
			if i > 0 {
				b = append(b, ",\n"...)
			}
			b = append(append(b, indent...), "  "...)
			b = append(appendPlain(b, f.name), " : "...)
			b = appendJSON(b, f.value, indent+"  ")
		}
		return append(append(append(b, '\n'), indent...), '}')
	case []object:
		return appendList(b, v, indent)
	case []string:
		return appendList(b, v, indent)
	case []int64:
		return appendList(b, v, indent)
	case float64:
		return append(b, decimal(v)...)
	}
	return appendPlain(b, v)
}

func appendList[T any](b []byte, list []T, indent string) []byte {
	b = append(b, "[ "...)
	for i, v := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendJSON(b, v, indent)
	}
	if len(list) > 0 {
		b = append(b, ' ')
	}
	return append(b, ']')
}

// appendPlain adds a string, a number, a boolean or null.
func appendPlain(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("admin page: %T: %v", v, err)) // no plain value fails
	}
	return append(b, text...)
}
