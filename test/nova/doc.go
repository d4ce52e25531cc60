// Package nova is a stand-in for Nova's metadata API: what a metadata proxy talks to,
// for tests and the demo.
//
// It takes requests as nova/api/metadata/handler.py does with
// service_metadata_proxy = True, and answers as nova/api/metadata/base.py does:
//
//   - "/" is the list of EC2's versions, for anybody;
//   - 400 without X-Instance-ID, X-Instance-ID-Signature or X-Tenant-ID, in this order;
//   - 403 unless the signature is the HMAC-SHA256 of the instance's id with the shared
//     secret, in lower-case hexadecimal;
//   - 404 for an instance that it does not know, or that is another project's, and for
//     a path that there is not;
//   - then OpenStack's tree below /openstack, and EC2's below all else.
//
// Two headers of one name, which webob joins by a comma, make an id that nobody has: so
// they do here. It says of each request what it was asked (Requests), and can be slow,
// silent or broken (Fault). It never looks at where a request comes from.
package nova
