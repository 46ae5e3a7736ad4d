import type { FastifyReply } from "fastify";

export interface CookieText {
  /** Absent: the browser removes the cookie. */
  readonly text: string | undefined;
  /** True: the browser sends it over HTTPS only. */
  readonly secure: boolean;
  /** Whole seconds. Absent: until the browser ends. */
  readonly maxAge?: number;
}

/** Old browsers do not know `Max-Age`. */
const PAST = "; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT";

/**
 * Adds a cookie that scripts cannot read (RFC 6265, 4.1). It is lax: the browser also sends it when another site
 * redirects back to this one.
 */
export function setCookie(reply: FastifyReply, name: string, { text, secure, maxAge }: CookieText): void {
  const life = text === undefined ? PAST : maxAge === undefined ? "" : `; Max-Age=${String(maxAge)}`;
  const only = secure ? "; Secure" : "";
  const line = `${name}=${encodeURIComponent(text ?? "")}${life}; Path=/; HttpOnly${only}; SameSite=Lax`;
  void reply.header("set-cookie", line);
}
