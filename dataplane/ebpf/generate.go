package ebpf

// The C sources are in /bpf: a .bpf.c file beside Go files would break the build
// without cgo. The include directories are those of either architecture. The last
// lines are of package taps, so that the flags are in one place.

//go:generate -command compile go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Wextra -Werror -Wno-address-of-packed-member -fno-strict-aliasing -mcpu=v3 -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu"
//go:generate compile -no-global-types -output-stem maps -type vrf -type vrf_front -type vtep_key -type vtep -type gateway_key -type gateway -type entry -type gateway_name -type served_key -type served -type served_answer -type known_key -type known -type asked -type host_key -type route_front -type length_end -type prefix_cache -type prefix4_key -type prefix6_key -type route -type nexthop -type path_mtu -type group -type counter -type sample -type trace_step -type trace -type node_constants -type direction -type entry_flags -type route_kind -type trace_what -type icmp_refusal -type df_mode -type guarded -type guard_flags -type underlay -type vip_key -type vip -type vip_flags -type answers -type answer_vip -type maglev_member -type balanced -type rate -type room -type evictions -type flow_map -type backend -type session_key -type session -type session_end -type first_fragment -type flow_key -type flow -type flow_kind -type flow_state -type flow_front_state -type client_key -type client -type client_flags -type neighbor_key -type neighbor -type neighbor_flags bpf ../../bpf/maps.bpf.c
//go:generate compile -no-global-types -output-stem fabric_in fabricIn ../../bpf/fabric_in.bpf.c
//go:generate compile -no-global-types -output-stem overlay_in overlayIn ../../bpf/overlay_in.bpf.c
//go:generate compile -no-global-types -output-stem trace wrapper ../../bpf/trace.bpf.c
//go:generate compile -no-global-types -output-stem vrf_guard vrfGuard ../../bpf/vrf_guard.bpf.c
//go:generate compile -no-global-types -output-stem underlay_in underlayIn ../../bpf/underlay_in.bpf.c
//go:generate compile -no-global-types -output-stem client_in clientIn ../../bpf/client_in.bpf.c
//go:generate compile -no-global-types -output-stem client_out clientOut ../../bpf/client_out.bpf.c
//go:generate compile -no-global-types -output-stem vtep_guard vtepGuard ../../bpf/vtep_guard.bpf.c
//go:generate compile -output-dir taps -go-package taps -no-global-types -output-stem taps -type tap_key -type tap -type guest4_key -type guest4 -type guest6_key -type guest6 -type source -type proxy -type steered bpf ../../bpf/taps.bpf.c
//go:generate compile -output-dir taps -go-package taps -no-global-types -output-stem tap_in tapIn ../../bpf/tap_in.bpf.c
//go:generate compile -output-dir taps -go-package taps -no-global-types -output-stem proxy_in proxyIn ../../bpf/proxy_in.bpf.c
