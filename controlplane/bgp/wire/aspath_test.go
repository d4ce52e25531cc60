package wire

import (
	"bytes"
	"testing"
)

// What the server gets of the paths of a neighbour that knows AS numbers of two octets alone (RFC 6793
// section 4.2.3), and which of them lead through this node's AS, 64512.
func TestNarrowPath(t *testing.T) {
	narrow, p4 := all, []byte{24, 10, 1, 2}
	narrow.Narrow = true
	next4, trans := attr(0x40, 3, hop4...), []byte{0x5b, 0xa0}
	for _, tt := range []struct {
		name       string
		path, four []byte
		want       []byte
		why        Refusal
		aggregator []byte
	}{
		{"two octets", []byte{2, 2, 0xfd, 0xe8, 0xfd, 0xe9}, nil, []byte{2, 2, 0, 0, 0xfd, 0xe8, 0, 0, 0xfd, 0xe9}, 0, nil},
		{"a longer number in AS4_PATH", append([]byte{2, 2, 0xfd, 0xe8}, trans...), []byte{2, 1, 0, 1, 0, 7}, []byte{2, 1, 0, 0, 0xfd, 0xe8, 2, 1, 0, 1, 0, 7}, 0, nil},
		{"AS4_PATH is longer", []byte{2, 1, 0xfd, 0xe8}, []byte{2, 2, 0, 1, 0, 7, 0, 1, 0, 8}, []byte{2, 1, 0, 0, 0xfd, 0xe8}, 0, nil},
		{"a wrong AS4_PATH", []byte{2, 1, 0xfd, 0xe8}, []byte{2, 9, 0}, []byte{2, 1, 0, 0, 0xfd, 0xe8}, 0, nil},
		{"own AS", []byte{2, 1, 0xfc, 0}, nil, nil, OwnAS, nil},
		{"own AS in AS4_PATH", append([]byte{2, 1}, trans...), []byte{1, 1, 0, 0, 0xfc, 0}, nil, OwnAS, nil},
		{"four octets", []byte{2, 2, 0, 0, 0xfd, 0xe8}, nil, nil, Malformed, nil},
		{"aggregated before AS4_PATH", append([]byte{2, 1}, trans...), []byte{2, 1, 0, 1, 0, 7}, []byte{2, 1, 0, 1, 0, 7}, 0, append(bytes.Clone(trans), 10, 0, 0, 1)},
		{"aggregated after AS4_PATH", []byte{2, 1, 0xfd, 0xe8}, []byte{2, 1, 0, 1, 0, 7}, []byte{2, 1, 0, 0, 0xfd, 0xe8}, 0, []byte{0xfd, 0xe8, 10, 0, 0, 1}},
	} {
		in := [][]byte{origin, attr(0x40, 2, tt.path...), next4}
		if tt.four != nil {
			in = append(in, attr(0xc0, 17, tt.four...))
		}
		if tt.aggregator != nil {
			in = append(in, attr(0xc0, 7, tt.aggregator...))
		}
		want := body(nil, p4, origin, attr(0x40, 2, tt.want...), next4)
		if tt.why != 0 {
			want = refused(tt.why, ipv4, hop4, p4)
		}
		if got, _, err := narrow.update(nil, body(nil, p4, in...)); err != nil || !bytes.Equal(got, messageOf(typeUpdate, want)) {
			t.Errorf("%s: %v\n got %x\nwant %x", tt.name, err, got, messageOf(typeUpdate, want))
		}
	}
}
