// Serves a small model on loopback with OpenAI's chat completions API, for scripts/test --local-model.
//
//   node local_model.mjs MODEL.gguf    prints the address when the server is ready
//
// The folder that it runs in must have the npm package node-llama-cpp.

import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const installed = createRequire(path.join(process.cwd(), "package.json")).resolve.paths("node-llama-cpp")[0];
const { getLlama, LlamaChat } = await import(pathToFileURL(path.join(installed, "node-llama-cpp/dist/index.js")));

const MOST_TOKENS = Number(process.env.LOCAL_MODEL_TOKENS ?? 300);
const threads = Number(process.env.LOCAL_MODEL_THREADS ?? 2);
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false, logLevel: "error", maxThreads: threads });
const model = await llama.loadModel({ modelPath: process.argv[2] });
const context = await model.createContext({ contextSize: Math.min(8192, model.trainContextSize), threads });
const sequence = context.getSequence();
const chat = new LlamaChat({ contextSequence: sequence });

function textOf(content) {
  return typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
}

// Messages as the library has them: the result of a call is part of the call.
function historyOf(messages) {
  const results = new Map(messages.filter(({ role }) => role === "tool").map((message) => [message.tool_call_id, textOf(message.content)]));
  const history = [];
  for (const message of messages) {
    if (message.role === "system" || message.role === "developer") history.push({ type: "system", text: textOf(message.content) });
    if (message.role === "user") history.push({ type: "user", text: textOf(message.content) });
    if (message.role !== "assistant") continue;
    const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => {
      let params = {};
      try { params = JSON.parse(given || "{}"); } catch { /* what is no JSON is no argument */ }
      return { type: "functionCall", name, params, result: results.get(id) ?? null };
    });
    history.push({ type: "model", response: [textOf(message.content), ...calls].filter((part) => part !== "") });
  }
  return history;
}

async function grammarOf(schema) {
  try {
    return await llama.createGrammarForJsonSchema(schema);
  } catch {
    return llama.getGrammarFor("json");
  }
}

async function answer({ messages, tools = [], tool_choice: choice, max_completion_tokens: limit, temperature }) {
  const history = historyOf(messages);
  const maxTokens = Math.min(limit ?? MOST_TOKENS, MOST_TOKENS);
  const before = sequence.tokenMeter.getState();
  const forced = choice?.function && tools.find((tool) => tool.function.name === choice.function.name)?.function;
  let text = "", calls = [], reason;
  if (forced) {
    const words = `Answer with one JSON object for ${forced.name}: ${forced.description ?? ""}\nIts schema: ${JSON.stringify(forced.parameters)}`;
    history.push({ type: "user", text: words }, { type: "model", response: [] });
    const found = await chat.generateResponse(history, { maxTokens, temperature, grammar: await grammarOf(forced.parameters) });
    calls = [{ name: forced.name, given: found.response }];
    reason = found.metadata.stopReason;
  } else {
    const functions = Object.fromEntries(tools.map(({ function: { name, description, parameters } }) => [name, { description, params: parameters }]));
    history.push({ type: "model", response: [] });
    const options = { maxTokens, temperature };
    let found;
    try {
      found = await chat.generateResponse(history, tools.length ? { ...options, functions, documentFunctionParams: false } : options);
    } catch {
      // A schema that the library cannot turn into a grammar.
      found = await chat.generateResponse(history, options);
    }
    text = found.response;
    calls = (found.functionCalls ?? []).map(({ functionName, params }) => ({ name: functionName, given: JSON.stringify(params ?? {}) }));
    reason = found.metadata.stopReason;
  }
  const used = sequence.tokenMeter.diff(before);
  const message = { role: "assistant", content: text || null };
  if (calls.length) message.tool_calls = calls.map(({ name, given }, at) => ({ index: at, id: `call_${Date.now()}_${at}`, type: "function", function: { name, arguments: given } }));
  const finish = calls.length ? "tool_calls" : reason === "maxTokens" ? "length" : "stop";
  return { message, finish, usage: { prompt_tokens: used.usedInputTokens, completion_tokens: used.usedOutputTokens, total_tokens: used.usedInputTokens + used.usedOutputTokens } };
}

// One answer at a time: there is one context.
let last = Promise.resolve();

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    last = last.then(async () => {
      const head = { id: "local", object: "chat.completion", created: 0, model: "local" };
      try {
        const { message, finish, usage } = await answer(JSON.parse(Buffer.concat(parts).toString()));
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ ...head, choices: [{ index: 0, message, finish_reason: finish }], usage }));
      } catch (error) {
        response.writeHead(500, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message: String(error) } }));
      }
    });
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
