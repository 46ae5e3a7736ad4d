import { once } from "node:events";
import { isIP } from "node:net";
import { connect } from "node:tls";

/** Milliseconds since 1970 at which the certificate of an address ends. Throws if it is not trusted. */
export async function certificateEnd(url: URL, signal: AbortSignal, timeoutMs: number): Promise<number> {
  const host = url.hostname.replaceAll(/[[\]]/g, "");
  const socket = connect({ host, port: Number(url.port || "443"), ...(isIP(host) === 0 && { servername: host }) });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });
    return Date.parse(socket.getPeerCertificate().valid_to);
  } finally {
    socket.destroy();
  }
}
