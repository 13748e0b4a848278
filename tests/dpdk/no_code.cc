// SPDX-License-Identifier: Apache-2.0
// A library without code: only its name, and what it needs, matter.
