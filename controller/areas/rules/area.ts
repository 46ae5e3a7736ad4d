import type { Area } from "../../area.ts";
import { forwardHostObject, ruleHostObject } from "./host-objects.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, WEBSOCKET_HOST_OBJECT } from "./bodies/body-objects.ts";
import type { RuleMemory } from "./bodies/memory.ts";
import { OMNIBUS_HOST_OBJECT } from "./bodies/omnibus.ts";
import type { RecentRecords } from "./parsing/recent.ts";
import type { FileParser } from "./parsing/parse-file.ts";
import { patternRoutes } from "./grok/pattern-routes.ts";
import type { PatternService } from "./grok/patterns.ts";
import { ruleRoutes } from "./routes.ts";
import type { SentLines } from "./parsing/sent-lines.ts";
import type { RuleService } from "./service.ts";
import type { RuleTrials } from "./trial/trial.ts";

export interface RuleParts {
  readonly rules: RuleService;
  readonly memory: RuleMemory;
  readonly recent: Pick<RecentRecords, "leave">;
  readonly fileParser: FileParser;
  readonly sentLines: SentLines;
  readonly trials: RuleTrials;
  readonly patterns: PatternService;
}

export function rulesArea(parts: RuleParts): Area {
  return {
    name: "rules",
    endpoints: [...ruleRoutes(parts), ...patternRoutes(parts.patterns)],
    hostObjects: [
      ruleHostObject(parts),
      forwardHostObject(parts.sentLines),
      RECORD_HOST_OBJECT,
      WEBSOCKET_HOST_OBJECT,
      RULE_LOCAL_OBJECT,
      OMNIBUS_HOST_OBJECT,
    ],
    leave: (tenant) => {
      parts.rules.leave();
      parts.memory.leave(tenant);
      parts.recent.leave(tenant);
    },
  };
}
