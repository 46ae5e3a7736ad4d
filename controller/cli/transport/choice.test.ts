import { expect, test, vi } from "vitest";
import { clientOf, send } from "../../../test/helpers/http/misbehaving-server.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { fetchFor } from "./choice.ts";

test.each([
  [{ NODE_USE_ENV_PROXY: "1" }, [], 1],
  [{ NODE_OPTIONS: "--no-warnings --use-env-proxy" }, [], 1],
  [{}, ["--use-env-proxy"], 1],
  [{ HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" }, [], 0],
])("the fetch of Node makes the calls if Node uses proxies of the environment: %j %j", async (env, execArgv, calls) => {
  const theirs = vi.spyOn(globalThis, "fetch");
  try {
    const { client } = await clientOf((_request, response) => send(response, 200, { status: "ok", message: [] }), {
      fetch: fetchFor({ env, execArgv }, realClock),
    });
    expect(await client.call("getHost")).toEqual([]);
    expect(theirs).toHaveBeenCalledTimes(calls);
  } finally {
    theirs.mockRestore();
  }
});
