import { Type } from "typebox";
import {
  ExtensionPath,
  ParseFileQuery,
  ParseFileReply,
  RuleKey,
  RuleList,
  RuleNew,
  RulePut,
  RuleQuery,
  RuleTry,
  RuleTryReply,
  SentLinesQuery,
  SentLinesReply,
} from "../../../common/api/rules.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { FileParser } from "./parsing/parse-file.ts";
import type { SentLines } from "./parsing/sent-lines.ts";
import type { RuleService } from "./service.ts";
import type { RuleTrials } from "./trial/trial.ts";

export function ruleRoutes({
  rules,
  fileParser,
  sentLines,
  trials,
}: {
  readonly rules: RuleService;
  readonly trials: RuleTrials;
  readonly fileParser: FileParser;
  readonly sentLines: SentLines;
}): readonly Endpoint[] {
  return [
    ...storedRoutes(rules),
    trialRoute(trials),
    ...extensionRoutes(rules),
    fileRoute(fileParser),
    linesRoute(sentLines),
  ];
}

function storedRoutes(rules: RuleService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/mxobject/rule",
      permission: "rules:read",
      summary: "Rules, of one class when it is named",
      input: RuleQuery,
      output: RuleList,
      handler: async ({ principal, input }) => ({ message: [...(await rules.list(principal, input.class))] }),
    }),
    endpoint({
      method: "PUT",
      path: "/mxobject/rule",
      permission: "rules:write",
      summary: "Insert or replace a rule",
      input: RulePut,
      output: Type.String(),
      body: "form",
      revised: true,
      handler: async ({ principal, input, expected }) => ({
        message: "",
        ...(await rules.put(principal, input.key, input.value, expected)),
      }),
    }),
    endpoint({
      method: "DELETE",
      path: "/mxobject/rule",
      permission: "rules:write",
      summary: "Remove a rule; a warning names the policies that need it",
      input: RuleKey,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const warnings = await rules.remove(principal, input.key, expected);
        return { message: "", warnings, revision: undefined };
      },
    }),
    endpoint({
      method: "POST",
      path: "/mxobject/rule/new",
      permission: "rules:write",
      summary: "Make the rule of a class and type; the message is its key",
      input: RuleNew,
      output: Type.String(),
      body: "json",
      revised: true,
      handler: async ({ principal, input, expected }) => {
        const { key, revision } = await rules.create(principal, input, expected);
        return { message: key, revision };
      },
    }),
  ];
}

function trialRoute(trials: RuleTrials): Endpoint {
  return endpoint({
    method: "POST",
    path: "/mxobject/rule/try",
    permission: "rules:write",
    summary:
      "What a rule, stored or given, or a grok pattern makes of sample records, or of the latest of a policy; nothing is stored",
    input: RuleTry,
    output: RuleTryReply,
    body: "json",
    handler: async ({ principal, input, signal }) => {
      const { warnings, ...message } = await trials.run(principal, { ...input, signal });
      return { message, warnings };
    },
  });
}

function extensionRoutes(rules: RuleService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/monitoring/policy/extend/*",
      permission: "rules:read",
      summary: "The extension table of a rule, LTSV; empty without one",
      input: ExtensionPath,
      output: Type.String(),
      handler: async ({ principal, input }) => ({ message: await rules.extension(principal, `/${input["*"]}`) }),
    }),
    endpoint({
      method: "POST",
      path: "/monitoring/policy/extend/*",
      permission: "rules:write",
      summary: "Replace the extension table of a rule by the body, LTSV",
      input: ExtensionPath,
      output: Type.String(),
      body: "raw",
      text: { summary: "The table, LTSV", example: "key:/start\tsite:north\n", optional: true },
      handler: async ({ principal, input, text = "" }) => {
        await rules.putExtension(principal, `/${input["*"]}`, text);
        return { message: "" };
      },
    }),
  ];
}

function fileRoute(fileParser: FileParser): Endpoint {
  return endpoint({
    method: "GET",
    path: "/action/parsefile",
    permission: "rules:write",
    summary:
      "Parse a file of the file system into the class of a rule; an error when all its records fail. Failures are in the console log of the rule",
    input: ParseFileQuery,
    output: ParseFileReply,
    handler: async ({ principal, input, signal }) => {
      const { warnings, ...message } = await fileParser.parse(principal, {
        rule: input.rule,
        filename: input.filename,
        encoding: input.encoding,
        space: (input.$issys ?? input.issys) ? "system" : "user",
        signal,
      });
      return { message, warnings };
    },
  });
}

function linesRoute(sentLines: SentLines): Endpoint {
  return endpoint({
    method: "POST",
    path: "/agent",
    permission: "rules:write",
    summary: "The lines of the body through a rule into its class, or to a channel, a frame for each",
    input: SentLinesQuery,
    output: SentLinesReply,
    body: "raw",
    text: { summary: "The lines", example: "/start,200\n/about,404\n", optional: true },
    marksMalformed: true,
    handler: async ({ principal, input: { malformed: mark, ...input }, text = "", malformed, signal }) => {
      const taken = await sentLines.take(principal, { ...input, text, isMarked: mark === "mark", malformed, signal });
      return "frames" in taken ? { message: taken } : { message: taken, warnings: taken.warnings };
    },
  });
}
