import { AppError } from "../../../../common/errors.ts";
import { TRIGGER_RUN_MAX_MS } from "../../../../common/limits.ts";
import type { ScriptEngine } from "../../../scripting/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { RuleBody } from "../definitions/options.ts";
import { checkedOnly } from "./frames.ts";

/** Checks that the body of the rule `key` parses, without running it. Throws the error that the engine reports. */
export async function checkBody(
  engine: Pick<ScriptEngine, "run">,
  { tenant, user, scriptDepth = 0 }: Principal,
  { key, body }: { readonly key: string; readonly body: RuleBody },
): Promise<void> {
  await engine.run(
    {
      tenant,
      kind: "serverjs",
      user,
      language: body.language,
      name: key,
      source: checkedOnly(body),
      globals: {},
      results: [],
      timeoutMs: TRIGGER_RUN_MAX_MS,
      depth: scriptDepth,
      owner: user,
    },
    { call: () => Promise.reject(new AppError("unsupported", "Nothing is called here.")) },
  );
}
