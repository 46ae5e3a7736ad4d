import { FunctionList, FunctionsInput, ScriptInput, ScriptOutput } from "../../../common/api/scripts.ts";
import type { Static } from "typebox";
import type { Value } from "../../../common/value.ts";
import { type Answer, type Call, endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { ScriptKind } from "../../scripting/index.ts";
import type { ScriptService } from "./service.ts";

const EXEC = {
  path: "/script/exec/js",
  permission: "scripts:read",
  input: ScriptInput,
  output: ScriptOutput,
  bare: { json: ScriptOutput },
} as const;

export function scriptRoutes(scripts: ScriptService): readonly Endpoint[] {
  const handler = (call: Call<Static<typeof ScriptInput>>) => run(scripts, call);
  return [
    endpoint({ ...EXEC, method: "GET", summary: "Run a script file; the answer is what it puts into OUTPUT", handler }),
    endpoint({
      ...EXEC,
      method: "POST",
      summary: "Run a script file, or a script given as the plain body; the answer is what it puts into OUTPUT",
      body: "text",
      text: { summary: "The script", example: "OUTPUT = 2 * 21", optional: true },
      content: () => ["filepath"],
      handler,
    }),
    ...(["", "/api"] as const).flatMap((prefix) =>
      (["rule", "trigger"] as const).map((kind) => functions(scripts, `${prefix}/${kind}/funcs`, kind)),
    ),
  ];
}

function functions(scripts: ScriptService, path: string, kind: ScriptKind): Endpoint {
  return endpoint({
    method: "GET",
    path,
    permission: kind === "rule" ? "rules:read" : "scripts:read",
    summary: `Functions that scripts of the kind ${kind} find`,
    input: FunctionsInput,
    output: FunctionList,
    handler: async ({ principal }) => ({ message: [...scripts.functions(principal, kind)] }),
  });
}

async function run(scripts: ScriptService, call: Call<Static<typeof ScriptInput>>): Promise<Answer<unknown>> {
  const { filepath, input, isfile, issys, rawdata } = call.input;
  const output = await scripts.run(call.principal, {
    filepath,
    text: call.text,
    isFile: isfile,
    input: input as Value | undefined,
    system: issys,
    signal: call.signal,
  });
  if (rawdata) return { json: output ?? null };
  return { message: output === undefined ? "" : output };
}
