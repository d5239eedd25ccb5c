// SPDX-License-Identifier: MIT
//
// docs/editors/vscode/extension.js: starts `crownyc lsp` for files of Hanseon. No build step: this is what runs.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function language(settings) {
    const chosen = settings.get("language", "auto");
    if (chosen !== "auto") return chosen;
    return vscode.env.language.startsWith("ko") ? "ko" : "en";
}

exports.activate = function (context) {
    const settings = vscode.workspace.getConfiguration("hanseon");
    const server = { command: settings.get("command", "crownyc"), args: ["lsp", "--lang", language(settings)] };
    const watcher = vscode.workspace.createFileSystemWatcher("**/*.{han,한선}");
    client = new LanguageClient("hanseon", "Hanseon", server, {
        documentSelector: [{ scheme: "file", language: "hanseon" }, { scheme: "untitled", language: "hanseon" }],
        synchronize: { fileEvents: watcher },
    });
    context.subscriptions.push(watcher);
    return client.start();
};

exports.deactivate = function () {
    return client ? client.stop() : undefined;
};
