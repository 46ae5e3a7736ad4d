import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { Secret, TOTP } from "otpauth";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { RECOVERY_CODES } from "../../common/limits.ts";
import { startChromium } from "../helpers/programs/chromium.ts";
import { openTestProvider, type TestProvider } from "../helpers/users/openid-provider.ts";
import { freePort } from "../helpers/programs/programs.ts";
import { form, Installation } from "./installation.ts";

const COMPANY = "matrix";
const ADMIN_PASSWORD = "correct horse battery";
const PERSON = { name: "ada", password: "a loom weaves flowers" };
const NOT_DONE = /"status":"(error|signin)"/;
const CLASS = "/matrix/shown/word";

const chromium = await startChromium();
if (!chromium && process.env.ODP_REQUIRE_CLUSTER === "1")
  throw new Error("Chromium is needed (apt-get install chromium).");

/** Behaviour of a real browser with pages, cookies and headers. Calls without a browser prove the rest. */
describe.skipIf(!chromium)("in a browser", () => {
  const browser = chromium as Browser;
  let odp: Installation;
  let provider: TestProvider;
  let context: BrowserContext;
  let page: Page;
  /** The browser's complaints, except for the provider's own pages, which request a font from elsewhere. */
  let complaints: string[];

  beforeAll(async () => {
    const port = await freePort();
    const own = `http://127.0.0.1:${port}`;
    provider = await openTestProvider(`${own}/user/openid/callback`);
    odp = await Installation.start({
      ODP_STORE: "embedded",
      ODP_PORT: String(port),
      ODP_ADMIN_PASSWORD: ADMIN_PASSWORD,
      ODP_OPENID_ISSUER: provider.issuer,
      ODP_OPENID_CLIENT_ID: provider.clientId,
      ODP_OPENID_CLIENT_SECRET: provider.clientSecret,
      ODP_OPENID_PUBLIC_URL: own,
      ODP_OPENID_NAME: "Lovelace & Co",
      ODP_OPENID_CREATE_USERS: "1",
    });
    await odp.mql(`create class ${CLASS} (name varchar, keys(name))`);
    await odp.mql(`insert into ${CLASS} name='kept'`);
  });
  afterAll(async () => {
    await browser.close();
    await odp?.stop();
    await provider?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    complaints = [];
    page.on("console", (message) => {
      const isOurs =
        !message.location().url.startsWith(provider.issuer) && !message.text().includes("NAME_NOT_RESOLVED");
      if (message.type() === "error" && isOurs) complaints.push(message.text());
    });
  });
  afterEach(() => context.close());

  /** Fills in the form on the page by its labels, as a person does. */
  async function signIn(username: string, password: string): Promise<void> {
    await page.goto(`${odp.url}/user/login`);
    await page.getByLabel("Company").fill(COMPANY);
    await page.getByLabel("User name").fill(username);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  async function asAdministrator(): Promise<void> {
    await signIn("admin", ADMIN_PASSWORD);
    await page.getByText("You are signed in.").waitFor();
  }

  const names = async () => (await odp.mql(`select name from ${CLASS}`)).map(({ name }) => name);

  test("a person signs in after a mistyped password, and what is behind the sign-out is gone", async () => {
    await signIn("admin", "mistyped");
    expect(await page.getByRole("alert").textContent()).toBe("Company, user name or password are wrong.");
    await asAdministrator();
    expect(await page.evaluate("document.cookie")).toBe("");
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ name: "matrixSession", httpOnly: true, sameSite: "Lax" });

    await page.getByRole("link", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await page.goBack();
    expect(await page.content()).not.toContain("You are signed in");
    await page.goto(`${odp.url}/mxobject/mql?mql=${encodeURIComponent(`select * from ${CLASS}`)}`);
    expect(await page.content()).not.toContain("kept");
    expect(complaints).toEqual([]);
  });

  test("the forms are shown with their style, by keyboard alone, and nothing on them is refused by their policy", async () => {
    await page.goto(`${odp.url}/user/login`);
    await page.locator("#username:focus").waitFor();
    await page.keyboard.type("admin");
    await page.keyboard.press("Tab");
    await page.keyboard.type(ADMIN_PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByText("You are signed in.").waitFor();
    await page.getByRole("link", { name: "Your account" }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    const radius = await page.evaluate("getComputedStyle(document.querySelector('main')).borderTopLeftRadius");
    expect(radius).not.toBe("0px");
    expect(complaints).toEqual([]);
  });

  test("the manual is read without sign-in and searched by keyboard, and its pages load all that they name", async () => {
    await page.goto(`${odp.url}/docs`);
    await page.getByRole("link", { name: "Glossary" }).first().click();
    await page.getByRole("heading", { level: 1, name: "Glossary" }).waitFor();
    expect(await page.title()).toBe("Glossary – odp manual");
    expect(await page.locator("nav [aria-current=page]").textContent()).toBe("Glossary");

    await page.keyboard.press("/");
    await page.keyboard.type("body_memory");
    const hit = page.locator("#hits").getByRole("link", { name: "Settings" });
    await hit.waitFor();
    await page.keyboard.press("Escape");
    expect(await hit.isVisible()).toBe(false);
    // Escape has also emptied the field.
    await page.keyboard.type("body_memory");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
    await page.locator(".hits").getByRole("link", { name: "Settings" }).click();
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").textContent()).toBe("Skip to the content");
    expect(complaints).toEqual([]);
  });

  test("the manual is read and searched without JavaScript, on a narrow screen as well", async () => {
    await using plain = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 640 } });
    const narrow = await plain.newPage();
    await narrow.goto(`${odp.url}/docs/api-jobs`);
    expect((await narrow.locator("main").boundingBox())?.width).toBeLessThanOrEqual(360);
    await narrow.getByLabel("Search the manual").fill("glossary");
    await narrow.getByRole("button", { name: "Search" }).click();
    await narrow.locator(".hits").getByRole("link").first().click();
    await narrow.getByRole("heading", { level: 1, name: "Glossary" }).waitFor();
  });

  test("a second factor is taken from the page to a device, asked for at the next sign-in, and leaves no trace in the history", async () => {
    await odp.ok(
      "POST",
      "/admin/users/new",
      JSON.stringify({ parent: "/", otype: "usr", username: PERSON.name, passwd: PERSON.password }),
    );
    await signIn(PERSON.name, PERSON.password);
    await page.getByRole("link", { name: "Your account" }).click();
    await page.locator("#begin").fill(PERSON.password);
    await page.getByRole("button", { name: "Turn on" }).click();
    const picture = await page.getByRole("img", { name: "QR code" }).boundingBox();
    expect(Math.min(picture?.width ?? 0, picture?.height ?? 0)).toBeGreaterThan(150);
    const secret = (await page.locator("#secret").textContent())?.replaceAll(" ", "") ?? "";
    const device = new TOTP({ secret: Secret.fromBase32(secret) });
    await page.getByRole("textbox", { name: "Code" }).fill(device.generate());
    await page.getByRole("button", { name: "Confirm" }).click();
    expect(await page.locator(".codes li").count()).toBe(RECOVERY_CODES);
    const [recovery = ""] = await page.locator(".codes li").allTextContents();
    // The browser does not cache the page with the secret: it would have to send the form again.
    await expect(page.goBack()).rejects.toThrow("ERR_CACHE_MISS");
    await page.waitForURL(/^chrome-error:/);

    await page.goto(`${odp.url}/`);
    await page.getByRole("link", { name: "Sign out" }).click();
    await signIn(PERSON.name, PERSON.password);
    await page.getByRole("textbox", { name: "Code" }).fill(recovery);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("You are signed in.").waitFor();
    expect(complaints).toEqual([]);
  });

  test("a person signs in at the provider, and the way back is taken once", async () => {
    provider.accounts.set("grace", { preferred_username: "grace" });
    await page.goto(`${odp.url}/user/login`);
    await page.getByRole("link", { name: "Sign in with Lovelace & Co" }).click();
    await page.getByPlaceholder("Enter any login").fill("grace");
    await page.getByPlaceholder("and password").fill("any");
    await page.getByRole("button").click();
    const back = page.waitForRequest(/\/user\/openid\/callback/);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("You are signed in.").waitFor();
    expect(await page.locator("dd").first().textContent()).toBe("grace");

    const other = await browser.newContext();
    const thief = await other.newPage();
    await thief.goto((await back).url());
    expect(await thief.getByRole("alert").textContent()).toBe("That took too long. Please sign in again.");
    await other.close();

    await page.getByRole("link", { name: "Sign out" }).click();
    await page.goto("about:blank");
    await page.setContent(`<a href="${odp.url}/user/openid">a link of somebody</a>`);
    await page.getByRole("link").click();
    await page.getByRole("link", { name: "Sign in with Lovelace & Co" }).click();
    await page.getByText("You are signed in.").waitFor();
    expect(complaints).toEqual([]);
  });

  test("a page that somebody stored runs in an origin of its own, and reaches nothing by the reader's session", async () => {
    const work = `insert into ${CLASS} name='by a stored page'`;
    const script = `
      const call = "/mxobject/mql?mql=" + encodeURIComponent(${JSON.stringify(work)});
      const tried = [
        () => document.cookie,
        () => localStorage.length,
        () => fetch(call, { method: "POST", credentials: "include" }).then((answer) => answer.text()),
        () => new Promise((resolve, reject) => {
          const socket = new WebSocket(location.href.replace(/^http(.*?)\\/fs.*/, "ws$1/websocket/datachange"));
          socket.onopen = resolve;
          socket.onerror = () => reject(new Error("refused"));
        }),
      ];
      const outcomes = tried.map(async (attempt) => { try { await attempt(); return "reached"; } catch { return "refused"; } });
      Promise.all(outcomes).then((all) => { document.body.textContent = origin + " " + all.join(" "); });`;
    const stored = `<body><script>${script}</script></body>`;
    await odp.ok("PUT", "/fs/shown/page.html", form({ type: "html", data: stored }));
    await asAdministrator();
    await page.goto(`${odp.url}/fs/shown/page.html?type=open`);
    await page.getByText("null refused refused refused refused").waitFor();

    const posting = `<form method="post" action="/mxobject/mql"><input name="mql" value="${work}"><button>Go</button></form>`;
    await odp.ok("PUT", "/fs/shown/form.html", form({ type: "html", data: posting }));
    await page.goto(`${odp.url}/fs/shown/form.html?type=open`);
    const answered = page.waitForResponse(/mxobject/);
    await page.getByRole("button").click();
    expect(await (await answered).text()).toMatch(NOT_DONE);
    expect(await names()).toEqual(["kept"]);
  });

  describe.each([
    ["another site", "localhost"],
    ["another port of this machine, to which the browser sends the cookie", "127.0.0.1"],
  ])("a page of %s", (_, host) => {
    let server: Server;
    let origin: string;
    let shown: string;

    beforeAll(async () => {
      server = createServer((_request, response) => response.setHeader("content-type", "text/html").end(shown));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      origin = `http://${host}:${(server.address() as AddressInfo).port}`;
    });
    afterAll(() => server.close());
    beforeEach(asAdministrator);

    const work = (name: string) => `insert into ${CLASS} name='${name}'`;

    test("sends no form, no link and no script that changes something", async () => {
      const mql = `${odp.url}/mxobject/mql`;
      shown = `<form method="post" action="${mql}"><input name="mql" value="${work("by a form")}"><button>Go</button></form>
<form method="post" enctype="text/plain" action="${odp.url}/admin/users/new"><input name='{"parent":"/","otype":"usr","username":"eve","passwd":"a loom weaves lies","x":"' value='"}'><button>Text</button></form>
<a href="${mql}?mql=${encodeURIComponent(work("by a link"))}">Link</a>`;
      for (const [role, name] of [
        ["button", "Go"],
        ["button", "Text"],
        ["link", "Link"],
      ] as const) {
        await page.goto(origin);
        const answered = page.waitForResponse((response) => response.url().startsWith(odp.url));
        await page.getByRole(role, { name }).click();
        expect(await (await answered).text(), name).toMatch(NOT_DONE);
      }
      await page.goto(origin);
      const read = await page.evaluate(
        async ([url = "", text = ""]) => {
          const request = { method: "POST", credentials: "include", body: new URLSearchParams({ mql: text }) } as const;
          const outcomes = await Promise.allSettled([fetch(url, { ...request, mode: "no-cors" }), fetch(url, request)]);
          return outcomes.map(({ status }) => status);
        },
        [mql, work("by a script")],
      );
      expect(read).toEqual(["rejected", "rejected"]);
      expect(await names()).toEqual(["kept"]);
      expect(JSON.stringify(await odp.ok("GET", "/admin/users"))).not.toContain('"eve"');
    });

    test("opens no WebSocket and shows no page of ours in a frame", async () => {
      shown = `<iframe src="${odp.url}/user/login"></iframe>`;
      await page.goto(origin);
      await expect.poll(() => complaints.join()).toMatch(/frame-ancestors|refused to connect/i);
      const socket = await page.evaluate(
        (url) =>
          new Promise<string>((resolve) => {
            const opened = new WebSocket(url);
            opened.onopen = () => resolve("open");
            opened.onerror = () => resolve("refused");
          }),
        `${odp.url.replace("http", "ws")}/websocket/datachange`,
      );
      expect(socket).toBe("refused");
    });
  });
});
