import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, test } from "vitest";
import { maySignIn, namesOwnHost, provesOrigin, type OwnAddress } from "./origin.ts";

const own: OwnAddress = { host: "odp.example", protocol: "https", publicNames: ["odp.public"] };
const plain: OwnAddress = { ...own, protocol: "http" };

describe("a call by cookie of an origin", () => {
  test.each<readonly [string, OwnAddress, string, boolean]>([
    ["of its own", own, "https://odp.example", true],
    ["of its own by plain HTTP, which anybody on the way can make", own, "http://odp.example", false],
    ["of its public name by plain HTTP", own, "http://odp.public", false],
    ["of its public name", own, "https://odp.public", true],
    ["of its public name on another port", own, "https://odp.public:8443", false],
    ["by HTTPS, where TLS ends at a proxy that is not configured", plain, "https://odp.example", true],
    ["by HTTP, where it came so", plain, "http://odp.example", true],
    ["of another site", own, "https://evil.example", false],
    ["of its own host on another port", own, "https://odp.example:8443", false],
    ["that is none", own, "null", false],
    ["of another scheme", plain, "ftp://odp.example", false],
    ["with its own name behind another scheme", plain, "javascript:https://odp.example", false],
    ["that is no address", own, "https://odp example", false],
    ["where the host is none", { ...own, host: "a b" }, "https://a", false],
    ["of a name that is not public, by HTTPS on its usual port", own, "https://odp.example.evil", false],
    [
      "of its own host, which is public too, on another port",
      { ...own, host: "odp.public:8443" },
      "https://odp.public",
      false,
    ],
    ["of its public name by plain HTTP, where TLS ends elsewhere", plain, "http://odp.public", false],
  ])("%s", (_case, address, origin, isProven) => {
    expect(provesOrigin({ origin }, address, "cookie")).toBe(isProven);
    expect(provesOrigin({ referer: `${origin}/page`, "user-agent": "Mozilla/5.0" }, address, "cookie")).toBe(isProven);
  });
});

const OURS = "https://odp.example";
const FOREIGN = "https://evil.example";
const BROWSER = { "user-agent": "Mozilla/5.0" };

describe("a call may change something by cookie or by Basic, or sign its sender in,", () => {
  test.each<readonly [string, IncomingHttpHeaders, byCookie: boolean, byBasic: boolean, signsIn: boolean]>([
    ["of a program, which says nothing", {}, true, true, true],
    ["of a browser that says nothing", BROWSER, false, true, true],
    ["with a header that only pages of our own may add", { ...BROWSER, "x-requested-with": "x" }, true, true, true],
    ["with the other such header", { ...BROWSER, "x-csrf-token": "x" }, true, true, true],
    ["with such a header beside a foreign origin", { "x-csrf-token": "x", origin: FOREIGN }, true, true, true],
    ["within one origin, by a browser's word", { ...BROWSER, "sec-fetch-site": "same-origin" }, true, true, true],
    ["from another site, by a browser's word", { ...BROWSER, "sec-fetch-site": "cross-site" }, false, false, false],
    [
      "from another site with a referer of ours",
      { "sec-fetch-site": "cross-site", referer: OURS },
      false,
      false,
      false,
    ],
    ["from another site with an origin of ours", { "sec-fetch-site": "same-site", origin: OURS }, true, true, true],
    ["of a foreign origin with a referer of ours", { origin: FOREIGN, referer: OURS }, false, false, false],
    ["of a program with a foreign origin", { origin: FOREIGN }, false, false, false],
    ["of a program with a foreign referer", { referer: FOREIGN }, true, true, false],
    ["of a browser with a foreign referer", { ...BROWSER, referer: FOREIGN }, false, true, false],
    ["of a browser with a referer of ours", { ...BROWSER, referer: OURS }, true, true, true],
  ])("%s", (_case, headers, byCookie, byBasic, signsIn) => {
    expect([
      provesOrigin(headers, own, "cookie"),
      provesOrigin(headers, own, "basic"),
      maySignIn(headers, own),
    ]).toEqual([byCookie, byBasic, signsIn]);
  });
});

test.each<readonly [string, boolean]>([
  ["127.0.0.1:8080", true],
  ["[::1]:8080", true],
  ["192.0.2.7", true],
  ["localhost:8080", true],
  ["odp.public:8080", true],
  ["ODP.Public", true],
  ["", true],
  ["evil.example:8080", false],
  ["127.0.0.1.evil.example", false],
  ["localhost.evil.example", false],
  ["odp.public.evil.example", false],
  ["a b", false],
])("the host %j is one of ours: %s", (host, isOurs) => {
  expect(namesOwnHost({ host, publicNames: ["odp.public", "Odp.Public"] })).toBe(isOurs);
});
