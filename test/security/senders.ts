import { PASSWORD } from "../helpers/http/http-app.ts";

/** Address of the world in these tests. */
export const HOST = "odp.example:8080";
const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const basic = `Basic ${Buffer.from(`matrix.admin:${PASSWORD}`).toString("base64")}`;

export interface Sender {
  readonly name: string;
  /** True if its calls may change or run something. */
  readonly isTrusted: boolean;
  readonly headers: (session: string) => Readonly<Record<string, string>>;
}

const cookie = (name: string, isTrusted: boolean, headers: Readonly<Record<string, string>>): Sender => ({
  name: `cookie, ${name}`,
  isTrusted,
  headers: (session) => ({ host: HOST, cookie: `matrixSession=${session}`, ...headers }),
});

const remembered = (name: string, isTrusted: boolean, headers: Readonly<Record<string, string>>): Sender => ({
  name: `Basic, ${name}`,
  isTrusted,
  headers: () => ({ host: HOST, authorization: basic, ...headers }),
});

/** Senders of calls with credentials that a browser may have added by itself. */
export const SENDERS: readonly Sender[] = [
  cookie("a page of another site", false, {
    "user-agent": BROWSER,
    "sec-fetch-site": "cross-site",
    origin: "https://evil.example",
  }),
  cookie("a link on another site", false, { "user-agent": BROWSER, "sec-fetch-site": "cross-site" }),
  cookie("another site, by a program's name", false, { "user-agent": "curl/8", "sec-fetch-site": "cross-site" }),
  cookie("a page of a sibling site", false, {
    "user-agent": BROWSER,
    "sec-fetch-site": "same-site",
    origin: "https://wiki.example",
  }),
  cookie("the address bar", false, { "user-agent": BROWSER, "sec-fetch-site": "none" }),
  cookie("a browser that says nothing", false, { "user-agent": BROWSER }),
  cookie("an older browser on another site", false, {
    "user-agent": BROWSER,
    origin: "https://evil.example",
    referer: "https://evil.example/a",
  }),
  cookie("a link in an older browser", false, {
    "user-agent": BROWSER,
    referer: "https://evil.example/?odp.example:8080",
  }),
  cookie("a foreign origin without the name of a browser", false, { origin: "https://evil.example" }),
  cookie("no origin at all", false, { origin: "null" }),
  cookie("rubbish as origin", false, { origin: "odp.example:8080" }),
  cookie("the same host on another port", false, { origin: "http://odp.example:9090" }),
  cookie("the same host on the usual port", false, { origin: "https://odp.example" }),
  cookie("a name that begins alike", false, { origin: "http://odp.example:8080.evil.example" }),
  cookie("a detour over another site", false, {
    "user-agent": BROWSER,
    "sec-fetch-site": "cross-site",
    referer: `http://${HOST}/a`,
  }),
  cookie("a sandboxed frame of ours", false, { "user-agent": BROWSER, origin: "null", referer: `http://${HOST}/a` }),
  cookie("our own page", true, { "user-agent": BROWSER, "sec-fetch-site": "same-origin" }),
  cookie("our own page in an older browser", true, { "user-agent": BROWSER, origin: `http://${HOST}` }),
  cookie("our own page behind TLS", true, { "user-agent": BROWSER, origin: `https://${HOST}` }),
  cookie("a link on our own page in an older browser", true, { "user-agent": BROWSER, referer: `http://${HOST}/a?b` }),
  cookie("a script that says so", true, { "user-agent": BROWSER, "x-requested-with": "XMLHttpRequest" }),
  cookie("the token of a page", true, { "user-agent": BROWSER, "x-csrf-token": "any" }),
  cookie("a proxy that keeps its own name", true, {
    host: "10.0.0.1:8080",
    "user-agent": BROWSER,
    origin: "https://odp.example",
  }),
  cookie("a program", true, { "user-agent": "curl/8" }),
  cookie("a program without a name", true, {}),
  cookie("a page of another site, with Basic of its own", false, {
    "user-agent": BROWSER,
    "sec-fetch-site": "cross-site",
    authorization: basic,
  }),
  cookie("a browser that says nothing, with Basic", true, { "user-agent": BROWSER, authorization: basic }),
  remembered("a page of another site", false, { "user-agent": BROWSER, "sec-fetch-site": "cross-site" }),
  remembered("a page of a sibling site", false, { "user-agent": BROWSER, "sec-fetch-site": "same-site" }),
  remembered("a foreign origin", false, { origin: "https://evil.example" }),
  remembered("no origin at all", false, { origin: "null" }),
  remembered("our own page", true, { "user-agent": BROWSER, "sec-fetch-site": "same-origin" }),
  remembered("a browser that says nothing", true, { "user-agent": BROWSER }),
  remembered("a program", true, {}),
];
