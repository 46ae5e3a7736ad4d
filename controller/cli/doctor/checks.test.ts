import { expect, test } from "vitest";
import type { FetchResponse } from "../../../common/client/index.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { checksOf, type CheckOptions } from "./checks.ts";

const NOW_MS = Date.UTC(2026, 0, 2);
const DAY_MS = 86_400_000;

interface Controller {
  /** Answers by path; others are an empty list. */
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly dateMs?: number;
  readonly url?: string;
  readonly certificateDays?: number;
}

async function resultsOf({
  answers = {},
  dateMs = NOW_MS,
  url = "http://127.0.0.1:8080",
  certificateDays,
}: Controller) {
  const fetch = (to: string): Promise<FetchResponse> => {
    const path = new URL(to).pathname;
    if (answers[path] instanceof Error) return Promise.reject(answers[path]);
    const bare: Readonly<Record<string, unknown>> = {
      "/healthz": { status: "ok" },
      "/readyz": { status: "ok" },
      "/job": JOBS,
    };
    const body = answers[path] ?? bare[path] ?? { status: "ok", message: [] };
    const status = (body as { readonly status?: unknown }).status === "error" ? 403 : 200;
    const text = path === "/metrics" ? "odp_x 1\n" : JSON.stringify(body);
    const type = path === "/metrics" ? "text/plain" : "application/json";
    const headers = { "content-type": type, date: new Date(dateMs).toUTCString() };
    return Promise.resolve(new Response(text, { status, headers }));
  };
  const options: CheckOptions = {
    access: { url, user: "acme.ana", credentials: { token: "odp_x" }, context: "here" },
    ...{ version: "1.2.3", signal: new AbortController().signal, fetch },
    clock: { ...realClock, nowMs: () => NOW_MS },
    certificateEnd: () =>
      certificateDays === undefined
        ? Promise.reject(new Error("certificate has expired"))
        : Promise.resolve(NOW_MS + certificateDays * DAY_MS),
  };
  const checks = await checksOf(options);
  return Object.fromEntries(checks.map(({ check, result, detail }) => [check, `${result}: ${detail}`]));
}

const JOBS = { status: "ok", message: [{ class: "/acme/jobs/jobdef" }] };
const SAME = { "/openapi.json": { info: { version: "1.2.3" } } };

test("a controller on this machine that is well passes all checks", async () => {
  const checks = await resultsOf({ answers: SAME });
  expect(checks).toEqual({
    address: "ok: http://127.0.0.1:8080/, of the context here",
    connection: expect.stringMatching(/^ok: answers in \d+ ms$/) as string,
    encryption: "ok: none, and the controller is on this machine",
    clock: "ok: as this machine, within two seconds",
    version: "ok: controller 1.2.3, odp 1.2.3",
    session: "ok: signed in as acme.ana by an API token",
    rights: "ok: reads all that a bundle has",
    readiness: "ok: ready",
  });
});

test("each fault is told by its check, and the others go on", async () => {
  const answers = {
    "/openapi.json": { info: { version: "2.0.0" } },
    "/readyz": { status: "ok", lost: ["db-2"], warnings: ["a repair is due"], damaged: [{ store: "kv" }] },
    "/user/tokens": { status: "signin" },
    "/cluster/info": { status: "error", code: "denied", message: "You may not." },
  };
  const url = "http://odp.example:8080";
  const checks = await resultsOf({
    answers,
    url,
    dateMs: NOW_MS + 60_000,
  });
  expect(checks).toMatchObject({
    encryption: expect.stringContaining("warning: none: passwords") as string,
    clock: "warning: the controller is 60 s ahead of this machine: set both clocks by NTP",
    version: "warning: controller 2.0.0, odp 1.2.3: use an odp of the same version",
    session: expect.stringMatching(/^failed: /) as string,
    rights: expect.stringMatching(/^ok: does not read: nodes of the store/) as string,
    readiness: 'warning: lost: db-2; a repair is due; damaged: [{"store":"kv"}]',
  });
});

test("a call that breaks is a warning, and no matter of rights; who sees no job has no rights to runs", async () => {
  const broken = { "/host": { status: "error", code: "internal", message: "A bug." } };
  expect((await resultsOf({ answers: broken }))["rights"]).toBe("warning: hosts: A bug.");
  const none = { "/job": { status: "ok", message: [] } };
  expect((await resultsOf({ answers: none }))["rights"]).toMatch(/^ok: does not read: runs of jobs, deployments, /);
});

test("a certificate that is not trusted fails, and one that ends soon is a warning", async () => {
  const url = "https://odp.example";
  expect((await resultsOf({ url }))["encryption"]).toBe("failed: certificate has expired");
  expect((await resultsOf({ url, certificateDays: 5 }))["encryption"]).toBe(
    "warning: the certificate holds for 5 days: renew it",
  );
  expect((await resultsOf({ url, certificateDays: 90 }))["encryption"]).toBe("ok: the certificate holds for 90 days");
});

test("a controller that is not reached fails each check that needs it", async () => {
  const gone = new TypeError("fetch failed");
  const paths = ["/healthz", "/readyz", "/openapi.json", "/user/tokens", "/metrics", "/job"];
  const checks = await resultsOf({ answers: Object.fromEntries(paths.map((path) => [path, gone])) });
  const failed = Object.entries(checks).flatMap(([check, text]) => (text.startsWith("failed: ") ? [check] : []));
  expect(failed).toEqual(["connection", "version", "session", "rights", "readiness"]);
});
