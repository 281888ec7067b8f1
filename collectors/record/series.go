package record

import (
	"fmt"
	"strings"
)

// Series writes the name of one series: the metric and its label values in
// the order of metric.Desc.Labels, as "mysql.digest.count{shop,9f2c}". A
// metric without labels is its own series. The characters `\ , { }` of a
// label value are escaped with a backslash.
func Series(metric string, labels ...string) string {
	if len(labels) == 0 {
		return metric
	}
	var b strings.Builder
	b.WriteString(metric)
	b.WriteByte('{')
	for i, l := range labels {
		if i > 0 {
			b.WriteByte(',')
		}
		for j := 0; j < len(l); j++ {
			switch l[j] {
			case '\\', ',', '{', '}':
				b.WriteByte('\\')
			}
			b.WriteByte(l[j])
		}
	}
	b.WriteByte('}')
	return b.String()
}

// ParseSeries is the inverse of Series. It refuses text that Series does not
// write: no metric name, an unclosed or unescaped brace, a dangling backslash.
func ParseSeries(s string) (metric string, labels []string, err error) {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		if s == "" || strings.ContainsAny(s, `},\`) {
			return "", nil, fmt.Errorf("series %q: not a metric name", s)
		}
		return s, nil, nil
	}
	metric = s[:open]
	if metric == "" || strings.ContainsAny(metric, `},\`) {
		return "", nil, fmt.Errorf("series %q: not a metric name before the brace", s)
	}
	var label []byte
	for i := open + 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
			if i == len(s) {
				return "", nil, fmt.Errorf("series %q: ends in a backslash", s)
			}
			if !strings.ContainsRune(`\,{}`, rune(s[i])) {
				return "", nil, fmt.Errorf("series %q: a backslash before %q", s, s[i])
			}
			label = append(label, s[i])
		case ',':
			labels = append(labels, string(label))
			label = label[:0]
		case '}':
			if i != len(s)-1 {
				return "", nil, fmt.Errorf("series %q: text after the closing brace", s)
			}
			return metric, append(labels, string(label)), nil
		case '{':
			return "", nil, fmt.Errorf("series %q: unescaped brace in a label", s)
		default:
			label = append(label, c)
		}
	}
	return "", nil, fmt.Errorf("series %q: the brace is not closed", s)
}
