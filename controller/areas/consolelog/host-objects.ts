import { Type } from "typebox";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject } from "../../scripting/index.ts";
import { LEVELS, levelOf } from "./levels.ts";

/** `log`: the script's own console log. */
export const LOG_HOST_OBJECT: HostObject = {
  name: "log",
  summary: "The console log of the script; an entry begins with the place it was made at",
  functions: LEVELS.filter((name) => name !== "panic").map(logFunction),
};

function logFunction(name: (typeof LEVELS)[number]): HostFunction {
  return hostFunction({
    name,
    summary: `Makes an entry of the level ${name}`,
    parameters: [{ name: "values", schema: Type.Unknown({ description: "Texts; others as JSON" }), rest: true }],
    returns: "nothing",
    example: `log.${name}("three", { of: [1, 2, 3] })`,
    positioned: true,
    call: async ({ log, at }, values) => {
      const text = (values as readonly Value[]).map(textOf).join(" ");
      log(levelOf(name), at === "" ? text : `${at}: ${text}`);
      return undefined;
    },
  });
}

function textOf(value: Value): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
