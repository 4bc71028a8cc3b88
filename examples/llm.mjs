// A language model to measure phase by phase: loads it, reads a long prompt, writes some tokens. Uses node-llama-cpp.
//
//     assay run -- node llm.mjs MODULES MODEL.gguf
//
// MODULES is the folder in which `npm install node-llama-cpp` ran. The phases are lines "TIME NAME" in the file named
// by ASSAY_MARKERS; process.hrtime counts CLOCK_MONOTONIC, which is what assay expects. Without assay there is no such
// file and the program just runs. The speeds are the engine's own log lines, passed on as they are.
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const PROMPT_TOKENS = 1024;
const GENERATED_TOKENS = 128;
const DECODE_SECONDS = 20;
// The engine's threads wait for each other by spinning: where one of them has no core, all of them crawl.
const THREADS = Math.min(8, Math.max(1, availableParallelism() - 1));

function mark(phase) {
	if (process.env.ASSAY_MARKERS)
		appendFileSync(process.env.ASSAY_MARKERS, `${process.hrtime.bigint()} ${phase}\n`);
}

async function importFrom(folder, name) {
	const require = createRequire(resolve(folder, "package.json"));
	return import(pathToFileURL(require.resolve(name)));
}

// A tokenizer makes more tokens of a text than it has words, so this is long enough for any.
function makePrompt(model) {
	const words = ["banana", "tomato", "potato", "papaya", "cicada", "gazebo", "kimono", "domino", "tuxedo"];
	const text = Array.from({ length: PROMPT_TOKENS }, (_, i) => words[(i * i + i) % words.length]).join(" ");
	return model.tokenize(text).slice(0, PROMPT_TOKENS);
}

async function decode(sequence, last) {
	const tokens = [];
	const end = performance.now() + 1000 * DECODE_SECONDS;
	for await (const token of sequence.evaluate([last], { temperature: 0 })) {
		tokens.push(token);
		if (tokens.length === GENERATED_TOKENS || performance.now() > end)
			break;
	}
	return tokens;
}

async function main(folder, modelPath) {
	mark("load");
	const { getLlama } = await importFrom(folder, "node-llama-cpp");
	const llama = await getLlama({
		gpu: false,
		build: "never",
		debug: true,
		maxThreads: THREADS,
	});
	const model = await llama.loadModel({ modelPath });
	const context = await model.createContext({
		contextSize: PROMPT_TOKENS + GENERATED_TOKENS,
		performanceTracking: true,
	});
	const sequence = context.getSequence();
	const prompt = makePrompt(model);

	mark("prefill");
	await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1));
	mark("decode");
	const answer = await decode(sequence, prompt.at(-1));
	mark("shutdown");
	console.log(model.detokenize(answer));
	await context.printTimings();
	await llama.dispose();
}

const [folder, modelPath, ...rest] = process.argv.slice(2);
if (!modelPath || rest.length) {
	console.error("usage: node llm.mjs MODULES MODEL.gguf");
	process.exit(2);
}
await main(folder, modelPath);
