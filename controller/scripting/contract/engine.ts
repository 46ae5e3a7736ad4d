import { describe } from "vitest";
import { answersContract, nestedScriptsContract } from "./engine/answers.ts";
import { boundsOfCallsContract, boundsOfValuesContract } from "./engine/bounds.ts";
import { seriesContract } from "./engine/series.ts";
import { stoppedScriptsContract, stuckScriptsContract } from "./engine/stopping.ts";
import { type ContractEngine, engineSubject } from "./engine/subject.ts";
import type { LanguageTexts } from "./engine/texts.ts";

/** Contract of the engine for every language. */
export function scriptEngineContract(open: ContractEngine, texts: LanguageTexts): void {
  describe(`scripts in ${texts.language}`, () => {
    const subject = engineSubject(open, texts);
    answersContract(subject);
    stoppedScriptsContract(subject);
    stuckScriptsContract(subject);
    boundsOfValuesContract(subject);
    boundsOfCallsContract(subject);
    seriesContract(subject);
    nestedScriptsContract(subject);
  });
}
