import type { Area } from "../../area.ts";
import { forwardHostObject, ruleHostObject } from "./host-objects.ts";
import { RECORD_HOST_OBJECT, RULE_LOCAL_OBJECT, WEBSOCKET_HOST_OBJECT } from "./body-objects.ts";
import type { RuleMemory } from "./memory.ts";
import { OMNIBUS_HOST_OBJECT } from "./omnibus.ts";
import type { RecentRecords } from "./recent.ts";
import type { FileParser } from "./parse-file.ts";
import { patternRoutes } from "./pattern-routes.ts";
import type { PatternService } from "./patterns.ts";
import { ruleRoutes } from "./routes.ts";
import type { SentLines } from "./sent-lines.ts";
import type { RuleService } from "./service.ts";
import type { RuleTrials } from "./trial.ts";

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
