import type { FastifyInstance, LightMyRequestResponse } from "fastify";

/** A browser that stores the cookies of both sites, and follows the provider's redirects and forms. */
export class OpenIdBrowser {
  readonly cookies = new Map<string, string>();
  readonly #app: FastifyInstance;
  readonly #own: string;

  /** `own`: the address of the application for browsers. */
  constructor(app: FastifyInstance, own: string) {
    this.#app = app;
    this.#own = own;
  }

  /** Opens a page of the application. */
  async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<LightMyRequestResponse> {
    const path = url.startsWith(this.#own) ? url.slice(this.#own.length) : url;
    const own = { host: new URL(this.#own).host, accept: "text/html", "user-agent": "Mozilla/5.0" };
    const answer = await this.#app.inject({ url: path, headers: { ...own, cookie: this.#cookie(), ...headers } });
    this.#keep([answer.headers["set-cookie"] ?? []].flat());
    return answer;
  }

  async post(url: string, form: Readonly<Record<string, string>>): Promise<LightMyRequestResponse> {
    const { origin, host } = new URL(this.#own);
    const type = { "content-type": "application/x-www-form-urlencoded", accept: "text/html" };
    const headers = { host, origin, "sec-fetch-site": "same-origin", ...type, cookie: this.#cookie() };
    const payload = new URLSearchParams(form).toString();
    const answer = await this.#app.inject({ method: "POST", url, headers, payload });
    this.#keep([answer.headers["set-cookie"] ?? []].flat());
    return answer;
  }

  /** Signs in at the provider as that account, agrees, and returns the resulting address at the application. */
  async atProvider(address: string, account: string): Promise<string> {
    let at = address;
    let form: URLSearchParams | undefined;
    for (let steps = 0; steps < 12; steps++) {
      const headers = { cookie: this.#cookie() };
      const response = await fetch(at, {
        redirect: "manual",
        headers,
        ...(form && { method: "POST", body: form }),
      });
      this.#keep(response.headers.getSetCookie());
      const location = response.headers.get("location");
      const text = await response.text();
      if (location?.startsWith(this.#own)) return location;
      form = undefined;
      if (location !== null) at = new URL(location, at).href;
      else ({ at, form } = filled(text, at, account));
    }
    throw new Error(`The provider leads nowhere: ${at}`);
  }

  /** Runs the whole sign-in and returns the application's last answer. */
  async signIn(account: string, begin = "/user/openid"): Promise<LightMyRequestResponse> {
    return this.open(await this.cameBack(account, begin), { "sec-fetch-site": "cross-site" });
  }

  /** Goes to the provider and returns the address to which it sends the browser back. That address is not opened. */
  async cameBack(account: string, begin = "/user/openid"): Promise<string> {
    const { headers } = await this.open(begin);
    return this.atProvider(String(headers.location), account);
  }

  #cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keep(lines: readonly string[]): void {
    for (const line of lines) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "" || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }
}

function filled(page: string, at: string, account: string): { readonly at: string; readonly form: URLSearchParams } {
  const action = /action="([^"]+)"/.exec(page)?.[1];
  if (action === undefined) throw new Error(`No form at ${at}: ${page.slice(0, 2_000)}`);
  const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1] ?? "";
  return { at: new URL(action, at).href, form: new URLSearchParams({ prompt, login: account, password: "any" }) };
}
